/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transport/client.h"

#include "base/settings.h"
#include "control/transport/http.h"
#include "control/transport/state_dir.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX (64u << 20)

struct client {
	CURL *curl;
	struct endpoint endpoint;
	struct curl_slist *headers;
	char url[ENDPOINT_MAX];
	char error[CURL_ERROR_SIZE];
	long status;
	bool has_token;
};

struct buffer {
	char *data;
	size_t used;
};

static size_t take(char *data, size_t size, size_t n, void *context)
{
	struct buffer *buffer = context;
	size_t bytes = size * n;
	char *more;

	if (buffer->used + bytes > ANSWER_MAX)
		return 0;
	more = realloc(buffer->data, buffer->used + bytes + 1);
	if (!more)
		return 0;
	memcpy(more + buffer->used, data, bytes);
	buffer->data = more;
	buffer->used += bytes;
	more[buffer->used] = '\0';
	return bytes;
}

static void start_library(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void set_trust(struct client *client)
{
	const char *ca = setting_text(SETTING_TLS_CA, NULL);

	if (client->endpoint.pin[0]) {
		/* The key itself is pinned: its signer and its name add nothing. */
		curl_easy_setopt(client->curl, CURLOPT_PINNEDPUBLICKEY, client->endpoint.pin);
		curl_easy_setopt(client->curl, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(client->curl, CURLOPT_SSL_VERIFYHOST, 0L);
	} else if (ca) {
		curl_easy_setopt(client->curl, CURLOPT_CAINFO, ca);
	}
}

trib_status client_new(const struct endpoint *endpoint, const char *token, struct client **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct client *client = calloc(1, sizeof(*client));
	char header[TOKEN_MAX + 32];

	pthread_once(&once, start_library);
	if (!client || !(client->curl = curl_easy_init())) {
		free(client);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for an HTTP client");
	}
	client->endpoint = *endpoint;
	endpoint_url(endpoint, client->url, sizeof(client->url));
	snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
	client->headers = curl_slist_append(NULL, "Content-Type: application/json");
	client->has_token = *token != '\0';
	if (client->has_token)
		client->headers = curl_slist_append(client->headers, header);
	/* Without this, curl waits a second before it sends a long body. */
	client->headers = curl_slist_append(client->headers, "Expect:");
	curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, client->headers);
	curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, client->error);
	curl_easy_setopt(client->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(client->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, take);
	set_trust(client);
	*out = client;
	return TRIB_OK;
}

trib_status client_find(const char *controller, struct client **out)
{
	const char *text = controller ? controller : setting_text(SETTING_CONTROLLER, NULL);
	char state_dir[STATE_DIR_PATH_MAX], here[ENDPOINT_MAX], token[TOKEN_MAX];
	struct endpoint endpoint;
	trib_status status;

	if ((status = state_dir_find(NULL, state_dir)) != TRIB_OK)
		return status;
	if (!text) {
		if (state_dir_read(state_dir, STATE_DIR_ADDRESS, here, sizeof(here)) != TRIB_OK)
			return status_fail(TRIB_ERR_CONFIG,
			                   "no controller: set TRIB_CONTROLLER to what tribd "
			                   "--controller prints, or give --controller");
		here[strcspn(here, "\n")] = '\0';
		text = here;
	}
	if ((status = endpoint_parse(&endpoint, text)) || (status = token_read(state_dir, token)))
		return status;
	return client_new(&endpoint, token, out);
}

void client_free(struct client *client)
{
	if (!client)
		return;
	curl_slist_free_all(client->headers);
	curl_easy_cleanup(client->curl);
	free(client);
}

/* A hint for common errors, besides curl's own message. */
static trib_status explain(const struct client *client, CURLcode code)
{
	const char *hint = "";

	if (code == CURLE_SSL_PINNEDPUBKEYNOTMATCH)
		hint = "; its key is not the pinned one: is TRIB_CONTROLLER what that controller "
		       "printed?";
	else if (code == CURLE_PEER_FAILED_VERIFICATION)
		hint = "; give its pin (HOST:PORT#sha256//...) or TRIB_TLS_CA";
	else if (code == CURLE_COULDNT_CONNECT)
		hint = "; is tribd --controller running there?";
	return status_fail(TRIB_ERR_SYSTEM, "no answer from the controller at %s: %s%s",
	                   client->url, client->error[0] ? client->error : curl_easy_strerror(code),
	                   hint);
}

static trib_status read_answer(struct client *client, const struct buffer *buffer, json_t **answer)
{
	json_t *json = buffer->used ? json_loadb(buffer->data, buffer->used, 0, NULL) : NULL;
	const char *why = json ? json_string_value(json_object_get(json, "error")) : NULL;
	trib_status status = TRIB_OK;

	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &client->status);
	if (client->status == HTTP_UNAUTHORIZED)
		status = status_fail(
			TRIB_ERR_REFUSED,
			"the controller at %s refused: %s: set TRIB_TOKEN_FILE to a copy of the "
			"controller's token file, which is /var/lib/tributary/token there, or "
			"`token` in its TRIB_STATE",
			client->url,
			client->has_token ? "the token is wrong" : "there is no token here");
	else if (client->status >= 400)
		status = status_fail(TRIB_ERR_REFUSED, "the controller at %s refused: %s",
		                     client->url, why ? why : "no reason given");
	else if (!json)
		status = status_fail(TRIB_ERR_SYSTEM, "the server at %s is not a controller",
		                     client->url);
	if (status == TRIB_OK && answer)
		*answer = json;
	else
		json_decref(json);
	return status;
}

trib_status client_call(struct client *client, const char *method, const char *path,
                        const json_t *body, double timeout_s, json_t **answer)
{
	char url[ENDPOINT_MAX + 256], *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct buffer buffer = { 0 };
	trib_status status;
	CURLcode code;

	if (body && !text)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a request");
	snprintf(url, sizeof(url), "%s%s", client->url, path);
	client->status = 0;
	client->error[0] = '\0';
	curl_easy_setopt(client->curl, CURLOPT_URL, url);
	curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, text);
	curl_easy_setopt(client->curl, CURLOPT_HTTPGET, text ? 0L : 1L);
	if (text)
		curl_easy_setopt(client->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, (long)(timeout_s * 1000));
	curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &buffer);
	code = curl_easy_perform(client->curl);
	status = code == CURLE_OK ? read_answer(client, &buffer, answer) : explain(client, code);
	free(buffer.data);
	free(text);
	return status;
}

long client_status(const struct client *client)
{
	return client->status;
}

const struct endpoint *client_endpoint(const struct client *client)
{
	return &client->endpoint;
}
