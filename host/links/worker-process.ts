import { type Downward, recordOf, type Upward } from './process-messages.js';
import { ThreadLink } from './thread-link.js';

/**
 * The main thread of a worker's process: it holds the worker's thread, as the host's thread does where the worker is none of
 * its own, and hands on what goes between the two.
 *
 *   host's process                         worker's process
 *   ProcessLink ---- pipe: Downward ---->  this thread ---- port, doorbell ---->  worker's thread
 *               <--- pipe: Upward ------               <--- port, heartbeat ----
 *
 * It decides nothing. Whether a worker is stuck, and whether another one follows, is for the host's supervisor: this process
 * ends with its thread, or with the host.
 */

type Message = { type: string };

/** The host asks for the end; or it is gone, which the pipe tells. Both may be meant for all of a group of processes. */
const SIGNALS_OF_THE_HOST = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

let hasEnded = false;

for (const signal of SIGNALS_OF_THE_HOST) process.on(signal, () => {});
process.on('disconnect', endWithHost);
process.once('message', (setup: Downward<Message>) => {
  if (setup.kind === 'setup') run(setup);
});
if (!process.connected) endWithHost();

function run({ script, data, owner, beatMs }: Extract<Downward<Message>, { kind: 'setup' }>): void {
  let link: ThreadLink<unknown, Message, Message>;
  try {
    const events = { onMessage: (message: Message) => send({ kind: 'message', message }), onExit: end };
    link = new ThreadLink(new URL(script), data, events, owner);
  } catch (error) {
    end(error as Error);
    return;
  }
  process.on('message', (sent: Downward<Message>) => {
    if (sent.kind === 'message' && !hasEnded) link.post(sent.message);
  });
  if (beatMs > 0) tellBeats(link, beatMs);
}

/** A worker that does nothing costs nothing: only what has changed is sent. */
function tellBeats({ heartbeat }: ThreadLink<unknown, Message, Message>, beatMs: number): void {
  let told = { beats: -1, isAsleep: false };
  const look = () => {
    const { beats, isAsleep } = heartbeat;
    if (beats === told.beats && isAsleep === told.isAsleep) return;
    told = { beats, isAsleep };
    send({ kind: 'beat', ...told });
  };
  setInterval(look, beatMs).unref();
}

/** The last message; what it leaves the process with ends by itself, and the host waits for that only so long. */
function end(error: Error | null): void {
  hasEnded = true;
  send({ kind: 'ended', error: error && recordOf(error) }, () => {
    if (process.connected) process.disconnect();
  });
}

/** At once: a gentler end would wait for the worker's thread, which may be in a native call. */
function endWithHost(): void {
  if (!hasEnded) process.kill(process.pid, 'SIGKILL');
}

/** What cannot be sent any more has nobody who would want it. */
function send(message: Upward<Message>, onSent: () => void = () => {}): void {
  process.send!(message, undefined, {}, onSent);
}
