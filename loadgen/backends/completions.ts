import { asText, type Backend, type BackendOptions, openAiBackend } from './backend.js';

/** Backend for OpenAI's completions of a text. */
export function completionsBackend(options: BackendOptions): Backend {
  return openAiBackend(
    options,
    '/v1/completions',
    (turn, earlier) => ({ prompt: asText(turn, earlier) }),
    ({ text }: { text?: string }) => text,
  );
}
