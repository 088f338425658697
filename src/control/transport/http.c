/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transport/http.h"

#include "base/log.h"
#include "base/peer_text.h"
#include "base/secret.h"
#include "control/transport/http_guard.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CONNECTIONS_MAX 4096u
#define CONNECTIONS_A_HOST 256u /* of one address */
#define OTHER_FILES 128u        /* descriptors that a process needs besides connections */
#define IDLE_S 10u
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct http_server {
	struct http_options options;
	struct MHD_Daemon *daemon;
	struct http_guard *guard;
	char *token;
};

/* The state of one request. */
struct exchange {
	char *body;
	size_t used;
	bool too_long, allowed;
};

void http_fail(struct http_reply *reply, enum http_status status, const char *format, ...)
{
	char sentence[512], clean[512];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	json_decref(reply->json);
	reply->status = status;
	peer_text(clean, sizeof(clean), sentence, sizeof(sentence)); /* it may quote the request */
	reply->json = json_pack("{s:s}", "error", clean);
}

static bool is_allowed(const struct http_server *server, struct MHD_Connection *connection)
{
	const char *shown =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");

	if (!server->token[0])
		return true;
	return shown && !strncmp(shown, "Bearer ", 7) && secret_same(shown + 7, server->token);
}

/* Does the path match the route? *part: the part that matches "*". */
static bool route_fits(const struct http_route *route, const char *path, const char **part)
{
	size_t fixed = strlen(route->path);

	*part = NULL;
	if (route->path[fixed - 1] != '*')
		return !strcmp(route->path, path);
	fixed--;
	if (strncmp(route->path, path, fixed) || !path[fixed] || strchr(path + fixed, '/'))
		return false;
	*part = path + fixed;
	return true;
}

/* NULL: no route; *known: the path has a route with another method. */
static const struct http_route *route_find(const struct http_server *server, const char *method,
                                           const char *path, const char **part, bool *known)
{
	*known = false;
	for (const struct http_route *route = server->options.routes; route->path; route++) {
		if (!route_fits(route, path, part))
			continue;
		*known = true;
		if (!strcmp(route->method, method))
			return route;
	}
	return NULL;
}

static void handle(const struct http_server *server, const struct exchange *exchange,
                   const char *method, const char *path, struct http_reply *reply)
{
	struct http_request request = { .path = path };
	const struct http_route *route;
	json_error_t error;
	json_t *json = NULL;
	bool known;

	route = route_find(server, method, path, &request.part, &known);
	if (!exchange->allowed && !(route && route->open)) {
		http_fail(reply, HTTP_UNAUTHORIZED,
		          "the token is missing or wrong: send Authorization: Bearer TOKEN");
		return;
	}
	if (!route) {
		http_fail(reply, known ? HTTP_NO_METHOD : HTTP_NOT_FOUND, "no route for %s %s",
		          method, path);
		return;
	}
	if (exchange->too_long) {
		http_fail(reply, HTTP_TOO_LARGE, "the body is longer than %u bytes", HTTP_BODY_MAX);
		return;
	}
	if (exchange->used) {
		json = json_loadb(exchange->body, exchange->used, JSON_REJECT_DUPLICATES, &error);
		if (!json) {
			http_fail(reply, HTTP_BAD_REQUEST,
			          "the body is not JSON: %s, line %d, column %d", error.text,
			          error.line, error.column);
			return;
		}
	}
	request.json = json;
	route->handle(server->options.context, &request, reply);
	json_decref(json);
}

static enum MHD_Result send_reply(struct MHD_Connection *connection, struct http_reply *reply)
{
	const char *type = reply->type ? reply->type : "application/json";
	struct MHD_Response *response;
	enum MHD_Result result = MHD_NO;

	if (reply->json) {
		free(reply->text);
		reply->text = json_dumps(reply->json, JSON_COMPACT | JSON_REAL_PRECISION(6));
		json_decref(reply->json);
	}
	if (!reply->text)
		reply->text = strdup("{}");
	if (!reply->text)
		return MHD_NO;
	response = MHD_create_response_from_buffer(strlen(reply->text), reply->text,
	                                           MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(reply->text);
		return MHD_NO;
	}
	MHD_add_response_header(response, "Content-Type", type);
	if (reply->status == HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	result = MHD_queue_response(connection, reply->status ? reply->status : HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}

static void take_body(struct exchange *exchange, const char *data, size_t size)
{
	char *more;

	if (!exchange->allowed || exchange->too_long)
		return; /* it will be refused: keep no memory for it */
	if (exchange->used + size > HTTP_BODY_MAX) {
		exchange->too_long = true;
		return;
	}
	more = realloc(exchange->body, exchange->used + size);
	if (!more) {
		exchange->too_long = true;
		return;
	}
	memcpy(more + exchange->used, data, size);
	exchange->body = more;
	exchange->used += size;
}

static struct http_visit *visit_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **visit,
                          enum MHD_ConnectionNotificationCode code)
{
	struct http_server *server = context;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (code == MHD_CONNECTION_NOTIFY_STARTED && info)
		*visit = http_visit_begin(server->guard, info->connect_fd);
	else if (code == MHD_CONNECTION_NOTIFY_CLOSED)
		http_visit_end(*visit);
}

/* Called after the headers, for each piece of the body, and at the end. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *data, size_t *size, void **state)
{
	struct http_server *server = context;
	struct exchange *exchange = *state;
	struct http_reply reply = { 0 };

	(void)version;
	if (!exchange) {
		exchange = calloc(1, sizeof(*exchange));
		if (!exchange)
			return MHD_NO;
		exchange->allowed = is_allowed(server, connection);
		if (exchange->allowed && visit_of(connection))
			http_visit_prove(visit_of(connection));
		*state = exchange;
		return MHD_YES;
	}
	if (*size) {
		take_body(exchange, data, *size);
		*size = 0;
		return MHD_YES;
	}
	handle(server, exchange, method, path, &reply);
	return send_reply(connection, &reply);
}

static void on_end(void *context, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode code)
{
	struct exchange *exchange = *state;

	(void)context;
	(void)code;
	if (visit_of(connection))
		http_visit_rest(visit_of(connection));
	if (exchange)
		free(exchange->body);
	free(exchange);
	*state = NULL;
}

static void on_log(void *context, const char *format, va_list args)
{
	char line[512];

	(void)context;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	log_debug("http: %s", line);
}

/* As many connections as were asked for, and as the process may open files. */
static unsigned places(unsigned wanted)
{
	struct rlimit limit;

	wanted = wanted ? wanted : CONNECTIONS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return wanted;
	if (limit.rlim_cur < wanted + OTHER_FILES) {
		limit.rlim_cur = limit.rlim_max < wanted + OTHER_FILES ? limit.rlim_max
		                                                       : wanted + OTHER_FILES;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= wanted + OTHER_FILES)
		return wanted;
	return limit.rlim_cur > 2 * OTHER_FILES ? (unsigned)limit.rlim_cur - OTHER_FILES
	                                        : OTHER_FILES;
}

trib_status http_start(const struct http_options *options, struct http_server **out)
{
	struct http_server *server = calloc(1, sizeof(*server));
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_USE_ERROR_LOG;
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key },
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)PRIORITIES },
		{ MHD_OPTION_END, 0, NULL },
	};
	char text[64];

	if (!server || !(server->guard = http_guard_open(places(options->connections))) ||
	    !(server->token = strdup(options->token ? options->token : ""))) {
		if (server && server->guard)
			http_guard_close(server->guard);
		free(server);
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for an HTTP server");
	}
	server->options = *options;
	if (options->listen.storage.ss_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	if (options->key)
		flags |= MHD_USE_TLS;
	server->daemon = MHD_start_daemon(
		flags, udp_port(&options->listen), NULL, NULL, on_request, server,
		MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_SOCK_ADDR,
		&options->listen.storage, MHD_OPTION_CONNECTION_LIMIT, places(options->connections),
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, CONNECTIONS_A_HOST,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
		server, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
		options->key ? MHD_OPTION_ARRAY : MHD_OPTION_END, tls, MHD_OPTION_END);
	if (!server->daemon) {
		http_guard_close(server->guard);
		free(server->token);
		free(server);
		return status_fail_errno("cannot serve HTTP%s on %s", options->key ? "S" : "",
		                         udp_text(&options->listen, text, sizeof(text)));
	}
	*out = server;
	return TRIB_OK;
}

void http_stop(struct http_server *server)
{
	if (!server)
		return;
	MHD_stop_daemon(server->daemon);
	http_guard_close(server->guard);
	free(server->token);
	free(server);
}

uint16_t http_port(const struct http_server *server)
{
	return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

bool http_asks(const struct http_server *server)
{
	return server->token[0];
}
