import { constants, type ServerHttp2Session } from 'node:http2';

/** Milliseconds without a frame after which a client is asked whether it is still there. */
const SILENCE_MS = 60_000;
/** Milliseconds that it may take to answer: then it is gone. */
const ANSWER_MS = 20_000;
/** Pings of a client within a time, beyond which its connection is ended. Clients measure the network by some each second. */
const MAX_PINGS = 100;
const PINGS_MS = 10_000;

/**
 * Ends a connection whose client is gone without a word, so that it does not count for ever, and one whose client does nothing but
 * ask whether the server is there.
 */
export function guardSession(session: ServerHttp2Session): void {
  const ping = () => {
    if (session.destroyed) return;
    const timer = setTimeout(() => session.destroy(), ANSWER_MS);
    const isSent = session.ping((error) => {
      clearTimeout(timer);
      if (error === null) session.setTimeout(SILENCE_MS);
    });
    if (!isSent) clearTimeout(timer);
  };
  session.setTimeout(SILENCE_MS, ping);
  let pings = 0;
  let sinceMs = performance.now();
  session.on('ping', () => {
    const nowMs = performance.now();
    if (nowMs - sinceMs > PINGS_MS) {
      sinceMs = nowMs;
      pings = 0;
    }
    if (++pings <= MAX_PINGS) return;
    // Clients of gRPC know this text, and ping less often when they have read it.
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, Buffer.from('too_many_pings'));
    session.destroy();
  });
}
