import { recordOf } from '../../base/error-record.js';
import type { Downward, Upward } from './process-messages.js';
import { ThreadLink } from './thread-link.js';

/**
 * Main thread of a worker's process: it holds the worker's thread, as the host's thread does for a worker without a
 * process, and passes messages between the two.
 *
 *   host's process                         worker's process
 *   ProcessLink ---- pipe: Downward ---->  this thread ---- port, doorbell ---->  worker's thread
 *               <--- pipe: Upward ------               <--- port, heartbeat ----
 *
 * It decides nothing. The host's supervisor decides whether a worker is stuck and whether another one follows; this
 * process ends with its thread, or with the host.
 */

type Message = { type: string };

/**
 * Signals that are left to the host, which asks for the end or whose own end the pipe shows: they may reach a whole
 * group of processes.
 */
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
    // This thread is not known outside: what ends it ends the process.
    link = new ThreadLink(new URL(script), data, events, `${owner}'s process`);
  } catch (error) {
    end(error as Error);
    return;
  }
  process.on('message', (sent: Downward<Message>) => {
    if (sent.kind === 'message' && !hasEnded) link.post(sent.message);
  });
  if (beatMs > 0) tellBeats(link, beatMs);
}

/** Reports the heartbeat only where it has changed, so that an idle worker costs nothing. */
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

/** Sends the last message. What still runs ends by itself, and the host waits for it only so long. */
function end(error: Error | null): void {
  hasEnded = true;
  send({ kind: 'ended', error: error && recordOf(error) }, () => {
    if (process.connected) process.disconnect();
  });
}

/**
 * Kills this process with the host: a gentler end would wait for the worker's thread, which may be in a native call.
 */
function endWithHost(): void {
  if (!hasEnded) process.kill(process.pid, 'SIGKILL');
}

/** Sends a message; one that cannot be sent any more is dropped, since it has no reader. */
function send(message: Upward<Message>, onSent: () => void = () => {}): void {
  process.send!(message, undefined, {}, onSent);
}
