/* SPDX-License-Identifier: Apache-2.0 */
/* trib glm predict: the rows of a file, with a model. */
#include "options/json_writer.h"
#include "cli/glm/glm_command.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static struct {
	const char *output, *format, *label, *bad_rows, *missing;
	bool json, scores, probabilities;
} given;

static const struct option_row rows[] = {
	{ "output", 'o', OPTION_TEXT, &given.output, "FILE",
	  "write a prediction a line; - is stdout", "a9a.out" },
	{ "scores", 0, OPTION_FLAG, &given.scores, NULL,
	  "write activations behind the label, one a class", NULL },
	{ "probabilities", 'p', OPTION_FLAG, &given.probabilities, NULL,
	  "write probabilities behind the label (loss logistic)", NULL },
	{ "json", 0, OPTION_JSON, &given.json, "FILE", "print the summary as JSON", NULL },
	{ "bad-rows", 0, OPTION_TEXT, &given.bad_rows, "fail|skip",
	  "end at the first bad row (default), or leave bad rows out", "skip" },
	{ "format", 0, OPTION_TEXT, &given.format, "FORMAT", "libsvm or csv (default: by content)",
	  "csv" },
	{ "label", 0, OPTION_TEXT, &given.label, "COLUMN",
	  "CSV: name or number of the label's column, or none (default: the first; none if there "
	  "are as many columns as the model has features)",
	  "-1" },
	{ "missing", 0, OPTION_TEXT, &given.missing, "fail|zero",
	  "CSV: a row with an empty field, NA, NaN, null or ? is bad (default), or the field is 0",
	  "zero" },
	{ 0 },
};

static const struct options options = {
	"trib glm predict [OPTION]... MODEL FILE",
	"Predicts the rows of FILE with a model of trib glm train, and prints loss and accuracy "
	"for\n"
	"the rows whose label the model knows.",
	"trib glm predict m.bin a9a.t\n"
	"  trib glm predict m.bin new.svm.xz --output - --probabilities\n"
	"  trib glm predict prices.bin new.csv --label none --output prices",
	rows,
};

struct printer {
	FILE *out;
	bool probabilities;
	uint32_t vectors;
};

static void row_print(void *context, const trib_glm_prediction *p)
{
	const struct printer *printer = context;

	fprintf(printer->out, "%.9g", p->label);
	for (uint32_t i = 0; (given.scores || given.probabilities) && i < p->n_scores; i++)
		fprintf(printer->out, " %.9g",
		        printer->probabilities ? trib_glm_probability(p->scores[i]) : p->scores[i]);
	fputc('\n', printer->out);
}

static trib_status result_print(const trib_glm_predict_result *result)
{
	struct json_writer json;
	trib_status status;

	if (!given.json) {
		FILE *out = given.output && !strcmp(given.output, "-") ? stderr : stdout;

		fprintf(out, "%" PRIu64 " rows", result->rows);
		if (result->skipped_rows)
			fprintf(out, ", %" PRIu64 " bad rows skipped", result->skipped_rows);
		if (result->known < result->rows)
			fprintf(out, ", %" PRIu64 " with labels that the model knows",
			        result->known);
		if (!isnan(result->score.loss))
			fprintf(out, "; loss %.6f", result->score.loss);
		if (!isnan(result->score.accuracy))
			fprintf(out, ", accuracy %.2f %% (%.0f of %" PRIu64 ")",
			        100 * result->score.accuracy,
			        result->score.accuracy * (double)result->known, result->known);
		fputc('\n', out);
		return TRIB_OK;
	}
	status = json_start(&json, "-");
	if (status != TRIB_OK)
		return status;
	json_put_count(&json, "rows", result->rows);
	json_put_count(&json, "skipped_rows", result->skipped_rows);
	json_put_count(&json, "known", result->known);
	json_put_number(&json, "loss", "%.9g", result->score.loss);
	json_put_number(&json, "accuracy", "%.9g", result->score.accuracy);
	return json_finish(&json, "-");
}

static trib_status output_open(struct printer *printer)
{
	if (!given.output)
		return TRIB_OK;
	printer->out = strcmp(given.output, "-") ? fopen(given.output, "w") : stdout;
	return printer->out ? TRIB_OK : status_fail_errno("cannot write %s", given.output);
}

static trib_status output_close(struct printer *printer)
{
	bool bad = printer->out && (ferror(printer->out) || fflush(printer->out));

	if (printer->out && printer->out != stdout)
		bad |= fclose(printer->out) != 0;
	return bad ? status_fail_errno("cannot write %s", given.output) : TRIB_OK;
}

static trib_status file_predict(const trib_glm_model *model, const char *path)
{
	trib_glm_model_info info = { .struct_size = sizeof(info) };
	trib_glm_predict_options how = TRIB_GLM_PREDICT_INIT;
	trib_glm_predict_result result = { .struct_size = sizeof(result) };
	struct printer printer = { .probabilities = given.probabilities };
	trib_status status = trib_glm_model_describe(model, &info);

	if (status == TRIB_OK && given.probabilities && strcmp(info.loss, "logistic") != 0)
		status = status_fail(
			TRIB_ERR_ARGUMENT,
			"the model has the loss %s, and only logistic gives probabilities",
			info.loss);
	if (status == TRIB_OK)
		status = output_open(&printer);
	if (status != TRIB_OK)
		return status;
	how.format = given.format;
	how.label = given.label;
	how.skip_bad_rows = given.bad_rows && !strcmp(given.bad_rows, "skip");
	how.missing_zero = given.missing && !strcmp(given.missing, "zero");
	how.on_row = printer.out ? row_print : NULL;
	how.context = &printer;
	status = trib_glm_predict(model, path, &how, &result);
	if (status == TRIB_OK)
		status = output_close(&printer);
	return status == TRIB_OK ? result_print(&result) : status;
}

int glm_predict_command(int argc, char **argv)
{
	const char *operands[2];
	trib_glm_model *model;
	trib_status status;
	int code;

	if (!glm_options_parse(&options, argc, argv, operands, 2, &code))
		return code;
	if (given.bad_rows && strcmp(given.bad_rows, "skip") != 0 &&
	    strcmp(given.bad_rows, "fail") != 0)
		return options_fail(&options, "--bad-rows is fail or skip");
	if (given.missing && strcmp(given.missing, "zero") != 0 &&
	    strcmp(given.missing, "fail") != 0)
		return options_fail(&options, "--missing is fail or zero");
	status = trib_glm_model_read(operands[0], &model);
	if (status == TRIB_OK)
		status = file_predict(model, operands[1]);
	if (status != TRIB_OK)
		fprintf(stderr, "trib glm predict: %s\n", trib_last_error());
	trib_glm_model_free(model);
	return status == TRIB_OK ? 0 : 1;
}
