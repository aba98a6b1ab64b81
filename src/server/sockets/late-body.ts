import type { IncomingMessage, ServerResponse } from 'node:http';

/** Milliseconds for which an answer waits for the rest of its request's body. */
const REST_MS = 2000;

/**
 * Where a client wants no other request on its connection, lets the answer wait until the request has come, for `restMs` at most. A
 * refusal may be there before the body is: as the connection ends with it, a client that still sends would lose it.
 *
 *   client   headers, body ... body ......... body | reads
 *   server           refusal is ready, body dropped  `--> refusal, end of the connection
 *
 * Where the connection stays open, Node.js receives and drops the rest after the answer.
 */
export function answerAfterBody(incoming: IncomingMessage, outgoing: ServerResponse, restMs = REST_MS): void {
  if (incoming.complete || !isLast(incoming)) return;
  const end = outgoing.end.bind(outgoing) as (...args: unknown[]) => ServerResponse;
  outgoing.end = ((...args: unknown[]) => {
    outgoing.end = end as typeof outgoing.end;
    if (incoming.complete || incoming.destroyed) return end(...args);
    const timer = setTimeout(answer, restMs);
    incoming.once('end', answer).once('close', answer).resume();
    function answer() {
      clearTimeout(timer);
      incoming.off('end', answer).off('close', answer);
      end(...args);
    }
    return outgoing;
  }) as typeof outgoing.end;
}

/** Its client sends no other request on this connection. */
function isLast({ headers, httpVersion }: IncomingMessage): boolean {
  const named = headers.connection?.toLowerCase() ?? '';
  return named.includes('close') || (httpVersion === '1.0' && !named.includes('keep-alive'));
}
