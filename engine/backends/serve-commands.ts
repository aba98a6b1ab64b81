import { Heartbeat } from '../../callbacks/heartbeat.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';

/** Milliseconds between two beats while a command runs whose code awaits something. */
const BEAT_MS = 250;

export interface CommandHandlers<Command> {
  run(command: Command): void | Promise<void>;
  /** No command follows; `closed` is reported afterwards. */
  tearDown(): void | Promise<void>;
  /** Commands that are no work and wait for none; true: this was one. */
  handleAtOnce?(command: Command): boolean;
}

/**
 * Runs what a worker is sent, one command after the other, until it is sent the command to end. The worker's
 * thread has its event loop, so that commands may await; the heartbeat goes on while they do, and stops where
 * the thread itself is stuck.
 */
export function serveCommands<Command extends { type: string }>(
  { port, heartbeat: beats }: WorkerWires,
  { run, tearDown, handleAtOnce }: CommandHandlers<Command>,
): void {
  const heartbeat = new Heartbeat(beats);
  heartbeat.sleep();
  let last: Promise<void> = Promise.resolve();
  port.on('message', (command: Command | { type: 'shutdown' }) => {
    if (isShutdown(command)) last = last.then(end);
    else if (!handleAtOnce?.(command)) last = last.then(() => runOne(command));
  });

  async function runOne(command: Command): Promise<void> {
    heartbeat.beat();
    const beating = setInterval(() => heartbeat.beat(), BEAT_MS).unref();
    try {
      await run(command);
    } finally {
      clearInterval(beating);
      heartbeat.sleep();
    }
  }

  async function end(): Promise<void> {
    await tearDown();
    port.postMessage({ type: 'closed' });
    port.close();
  }
}

function isShutdown(command: { type: string }): command is { type: 'shutdown' } {
  return command.type === 'shutdown';
}
