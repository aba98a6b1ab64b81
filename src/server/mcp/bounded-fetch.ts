import { TOOL_LIMITS } from './tool-limits.js';

/** What a fetch reads, by the types that Node.js has. */
type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/**
 * A fetch for a server of tools whose answers have a bounded size, however they are compressed or cut into events. There
 * is no stream of the server's own messages: nothing here would read them.
 * @param onTooLong called where an answer is longer, since a reader of events gets no error
 */
export function boundedFetch(onTooLong: (error: Error) => void): Fetch {
  return async (url, init) => {
    if (init?.method === 'GET') return new Response(null, { status: 405 });
    const response = await fetch(url, init);
    const { body, status, statusText, headers } = response;
    if (body === null) return response;
    let bytes = 0;
    const counted = body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          bytes += chunk.byteLength;
          if (bytes <= TOOL_LIMITS.answerBytes) {
            controller.enqueue(chunk);
            return;
          }
          const error = new Error(`its answer is longer than ${TOOL_LIMITS.answerBytes} bytes`);
          controller.error(error);
          onTooLong(error);
        },
      }),
    );
    return new Response(counted, { status, statusText, headers });
  };
}
