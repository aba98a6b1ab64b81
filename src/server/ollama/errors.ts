import { ApiError, toApiError } from '../web/errors.js';

/** Paths whose errors have the form that Ollama's clients know: {"error": text}. */
export function isOfOllama(path: string): boolean {
  return path === '/api' || path.startsWith('/api/');
}

/** An error as Ollama's clients know it. */
export function ollamaError(error: unknown): Response {
  const apiError = toApiError(error);
  const headers = { 'content-type': 'application/json', ...apiError.headers };
  return new Response(errorBody(apiError), { status: apiError.status, headers });
}

/** The same as a line of a stream, without its end. */
export function errorBody({ message }: ApiError): string {
  return JSON.stringify({ error: message });
}

/** No model has this name, in the words for which clients look. */
export function modelNotFound(name: string): ApiError {
  return new ApiError(404, `model '${name}' not found`, { param: 'model', code: 'model_not_found' });
}

/** The model cannot do it, in the words for which clients look: "embeddings", "generate", "insert", "thinking". */
export function notCapable(name: string, what: string): ApiError {
  return new ApiError(400, `"${name}" does not support ${what}`, {
    param: 'model',
    code: 'model_not_supported',
  });
}
