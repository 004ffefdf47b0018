// The errors of OpenAI.
const TYPES = {
    400: ["invalid_request_error", null],
    401: ["invalid_request_error", "invalid_api_key"],
    404: ["invalid_request_error", "model_not_found"],
    429: ["requests", "rate_limit_exceeded"],
};

export function error(status, message) {
    const [type, code] = TYPES[status] ?? ["server_error", null];
    return { error: { message, type, param: null, code } };
}
