import { type ChildProcess, fork } from 'node:child_process';
import { errorOf } from '../../base/error-record.js';
import { childOptions } from '../../base/run-step.js';
import type { WorkerLife } from '../../callbacks/worker-messages.js';
import { EngineFailure } from '../engine-failure.js';
import type { Downward, Upward } from './process-messages.js';
import { isMessage, type LinkEvents, type WorkerLink } from './worker-link.js';

/**
 * Milliseconds that a process may take to end by itself after its worker's thread has, so that its last output gets
 * out.
 */
const LAST_WORDS_MS = 2000;

/**
 * A worker in a process of its own, so that a crash in native code is the worker's alone. Messages are copied through a
 * pipe; their number is bounded as it is between threads: downward by the bridge's credits, upward by what the requests
 * in flight ask for.
 */
export class ProcessLink<Info, Message extends { type: string }, Command> implements WorkerLink<Command> {
  readonly subject: string;
  readonly whyStuck =
    'is in a call of the system that nothing interrupts (a device or a file system does not answer)';
  /** The heartbeat when the process last reported it. */
  readonly heartbeat = { beats: 0, isAsleep: false };
  readonly #child: ChildProcess;
  readonly #events: LinkEvents<Message | WorkerLife<Info>>;
  #hasClosed = false;
  #isDeserted = false;
  #isGone = false;
  #error: Error | null = null;
  #lastWords: NodeJS.Timeout | null = null;

  /**
   * @param owner whose process it is, as a sentence says it
   * @param beatMs how often the process checks whether there is a change of the heartbeat to report; 0: never
   * @throws what the system says where it has no room for a process
   */
  constructor(
    script: URL,
    data: object,
    events: LinkEvents<Message | WorkerLife<Info>>,
    { owner, beatMs }: { owner: string; beatMs: number },
  ) {
    this.#events = events;
    this.subject = `${owner}'s process`;
    this.#child = fork(workerProcessScript(), {
      serialization: 'advanced',
      execArgv: childOptions(),
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#child.on('message', (sent: Upward<Message | WorkerLife<Info>>) => this.#receive(sent));
    this.#child.on('error', (error) => {
      this.#error ??= error;
      if (this.#child.pid === undefined) this.#finish(null, null);
    });
    // 'close' follows the end of the process and of the pipe, which still has its last messages.
    this.#child.on('close', (code, signal) => this.#finish(code, signal));
    try {
      this.#send({ kind: 'setup', script: script.href, data, owner, beatMs });
    } catch (error) {
      this.#error = new EngineFailure(
        `${this.subject} cannot be given its options: ${(error as Error).message}`,
      );
      this.terminate();
    }
  }

  get pid(): number | null {
    return this.#child.pid ?? null;
  }

  post(message: Command | { type: 'shutdown' }): void {
    this.#send({ kind: 'message', message });
  }

  desert(): void {
    this.#isDeserted = true;
  }

  terminate(): void {
    this.#child.kill('SIGKILL');
  }

  unref(): void {
    this.#child.unref();
    this.#child.channel?.unref();
  }

  #receive(sent: Upward<Message | WorkerLife<Info>>): void {
    if (this.#isDeserted) return;
    switch (sent.kind) {
      case 'message':
        if (!isMessage(sent.message)) break;
        if (sent.message.type === 'closed') this.#hasClosed = true;
        this.#events.onMessage(sent.message);
        break;
      case 'beat':
        this.heartbeat.beats = sent.beats;
        this.heartbeat.isAsleep = sent.isAsleep;
        break;
      case 'ended':
        this.#error = sent.error && errorOf(sent.error);
        this.#lastWords = setTimeout(() => this.terminate(), LAST_WORDS_MS);
        break;
    }
  }

  /** Sends a message. Throws where it cannot be copied. If the process has ended, its end is reported instead. */
  #send(message: Downward<Command>): void {
    this.#child.send(message as object, () => {});
  }

  #finish(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#isGone) return;
    this.#isGone = true;
    if (this.#lastWords !== null) clearTimeout(this.#lastWords);
    const error = this.#error ?? new EngineFailure(`${this.subject} ${howEnded(code, signal)}`);
    this.#events.onExit(this.#hasClosed ? null : error);
  }
}

function howEnded(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal === null) return `ended unexpectedly with exit code ${code}.`;
  const hint = signal === 'SIGKILL' ? '; if no user sent it, the system did for want of memory' : '';
  return `was ended by ${signal}${hint}.`;
}

/** URL of the module that a worker's process runs: a file next to this one, also where both are bundled. */
const workerProcessScript = (): URL => new URL('./worker-process.js', import.meta.url);
