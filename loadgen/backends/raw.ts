import { asText, type Backend, type BackendOptions } from './backend.js';

/**
 * Backend for any HTTP endpoint: the prompt is the whole body, and the answer is not parsed. Each event of a stream, or
 * the whole of another body, counts as one piece.
 */
export function rawBackend({ path }: BackendOptions): Backend {
  return {
    path: path ?? '/',
    endsWithConnection: true,
    body: asText,
    readEvent: (data, sink) => (data === '[DONE]' ? sink.finish() : sink.text(data)),
    readWhole: (text, sink) => {
      if (text !== '') sink.text(text);
    },
  };
}
