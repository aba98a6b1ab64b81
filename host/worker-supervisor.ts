import { SkeinError } from '../base/skein-error.js';
import { RestartPolicy, type WorkerRestartOptions } from '../callbacks/restart-policy.js';
import type { WorkerLife } from '../callbacks/worker-messages.js';
import { asSkeinError, EngineFailure } from './engine-failure.js';
import type { LinkEvents, WorkerLink } from './links/worker-link.js';
import { Watchdog } from './watchdog.js';

/**
 * An error for a worker whose thread was asked to end and did not: it is in a native call, which nothing can
 * interrupt.
 */
export class WorkerStuckError extends SkeinError {
  override name = 'WorkerStuckError';
  override readonly code = 'SKEIN_WORKER_STUCK';
}

/**
 * Type parameters: Info, what a worker reports about its engine once loaded; Message, all other messages from
 * it; Command, messages to it.
 */
export interface SupervisorOptions<Info, Message extends { type: string }, Command> {
  /** Starts a worker. Throws where the system has no room for one. */
  link: (events: LinkEvents<Message | WorkerLife<Info>>) => WorkerLink<Command>;
  /** Policy for restarting a worker that died; false: its death is the end. */
  restart: WorkerRestartOptions | false;
  /** Time-out of the watchdog, in milliseconds; 0: no watchdog. */
  watchdogTimeoutMs: number;
  /** Milliseconds that a worker may take to end when asked to. */
  terminateTimeoutMs: number;
  /**
   * Milliseconds that a restarted worker may take before it counts as one that cannot be started; 0, the
   * default: any time. For the first one, the caller that waits for it sets the limit.
   */
  startLimitMs?: number | undefined;
  /** True while something waits for the worker. */
  isAwaited: () => boolean;
  /** Called when a worker has loaded the engine and runs. */
  onReady: (worker: WorkerLink<Command>, info: Info) => void;
  /** Called with every other message of the running worker. */
  onMessage: (message: Message | { type: 'closed' }) => void;
  /** Called when the worker is lost, with everything it had. Another worker or onEnded follows. */
  onLost: (error: Error) => void;
  /** Called when there will be no other worker. `error` is null where the end was asked for. */
  onEnded: (error: Error | null) => void;
}

/**
 * Keeps a worker running: starts it, watches its heartbeat, and after its death waits a while and starts another one.
 *
 *   loading --ready--> running --death, watchdog--> lost --thread gone--> waiting --delay--> loading
 *      |                  |                           |
 *      '--first load      '--closed------ended--------'--thread does not end, start fails too often, end asked for
 */
export class WorkerSupervisor<Info, Message extends { type: string }, Command> {
  readonly #options: SupervisorOptions<Info, Message, Command>;
  readonly #policy: RestartPolicy;
  #worker: WorkerLink<Command>;
  #watchdog: Watchdog | null = null;
  /** Time on performance.now's clock when the worker became ready; null while it loads. */
  #readySinceMs: number | null = null;
  #wasEverReady = false;
  #isEndAsked = false;
  /** True where the end was asked for: whatever still happens, it counts as that end. */
  #endsWell = false;
  /** Why the present worker is being given up; null: it is not. */
  #lost: Error | null = null;
  /** Of the state it is in: a start, an end or a pause takes no longer. */
  #timer: NodeJS.Timeout | null = null;
  #isWaiting = false;
  #hasEnded = false;
  #restarts = 0;

  constructor(options: SupervisorOptions<Info, Message, Command>) {
    this.#options = options;
    this.#policy = new RestartPolicy(options.restart === false ? {} : options.restart);
    this.#worker = this.#start();
  }

  /** Number of workers started after the first one. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Id of the present worker's process; null where there is none, or where it is a thread. */
  get pid(): number | null {
    return this.#hasEnded || this.#isWaiting ? null : this.#worker.pid;
  }

  /** Sends a message to the worker that runs. False where there is none now. @param transfer see WorkerLink.post */
  post(message: Command, transfer?: readonly ArrayBuffer[]): boolean {
    if (!this.#runs) return false;
    this.#worker.post(message, transfer);
    return true;
  }

  /** Ends the worker that runs in the middle of whatever it does, for this reason; another one follows. */
  replace(error: Error): void {
    if (this.#runs) this.#lose(error);
  }

  /** The worker ends once nothing is active; none follows. */
  shutdown(): void {
    if (this.#hasEnded) return;
    this.#isEndAsked = true;
    if (this.#isWaiting) this.#end(null);
    else if (this.#lost === null) this.#worker.post({ type: 'shutdown' });
    else this.#endsWell = true;
  }

  /** Ends the worker at once, whatever it still has; none follows. */
  terminate(reason: string): void {
    if (this.#hasEnded) return;
    this.#isEndAsked = true;
    this.#endsWell = true;
    if (this.#isWaiting) this.#end(null);
    else if (this.#lost === null) this.#lose(new EngineFailure(reason));
  }

  get #runs(): boolean {
    return !this.#hasEnded && !this.#isWaiting && this.#lost === null && this.#readySinceMs !== null;
  }

  #start(): WorkerLink<Command> {
    this.#lost = null;
    this.#readySinceMs = null;
    const worker = this.#options.link({
      onMessage: (message) => this.#handle(message),
      onExit: (error) => this.#handleExit(error && asSkeinError(error)),
    });
    this.#worker = worker;
    const { startLimitMs = 0 } = this.#options;
    if (this.#wasEverReady && startLimitMs > 0) {
      const message = `${worker.subject} took longer to start again than the ${startLimitMs} ms that it may.`;
      this.#setTimer(() => this.#lose(new EngineFailure(message)), startLimitMs);
    }
    return worker;
  }

  #handle(message: Message | WorkerLife<Info>): void {
    if (isReady<Info>(message)) {
      this.#handleReady(message.info);
      return;
    }
    if (message.type === 'closed') {
      this.#watchdog?.stop();
      // Anything else that runs in the thread, such as a timer of a callback module, must not keep it for
      // ever.
      this.#setTimer(() => this.#worker.terminate(), this.#options.terminateTimeoutMs);
    }
    this.#options.onMessage(message as Message | { type: 'closed' });
  }

  #handleReady(info: Info): void {
    const { watchdogTimeoutMs: timeoutMs, isAwaited } = this.#options;
    const worker = this.#worker;
    this.#stopTimer();
    this.#wasEverReady = true;
    this.#readySinceMs = performance.now();
    if (timeoutMs > 0) {
      const onStuck = () =>
        this.#lose(new EngineFailure(`${worker.subject} finished no iteration within ${timeoutMs} ms.`));
      this.#watchdog = new Watchdog({ heartbeat: worker.heartbeat, timeoutMs, isAwaited, onStuck });
    }
    this.#options.onReady(worker, info);
  }

  /** Gives up the worker. Messages that it sent before still count; later ones do not. */
  #lose(error: Error): void {
    this.#worker.desert();
    this.#noteLoss(error);
    this.#worker.terminate();
    this.#setTimer(() => this.#giveUpThread(error), this.#options.terminateTimeoutMs);
  }

  #noteLoss(error: Error): void {
    this.#watchdog?.stop();
    this.#watchdog = null;
    this.#lost = error;
    this.#options.onLost(error);
  }

  #handleExit(error: Error | null): void {
    this.#stopTimer();
    if (this.#hasEnded) return;
    if (this.#lost === null && error === null) {
      this.#watchdog?.stop();
      this.#end(null);
      return;
    }
    if (this.#lost === null) this.#noteLoss(error!);
    this.#startAnother(this.#lost!);
  }

  #startAnother(error: Error): void {
    if (this.#isEndAsked || this.#options.restart === false || !this.#wasEverReady) {
      this.#end(this.#endsWell ? null : error);
      return;
    }
    const ranMs = this.#readySinceMs === null ? null : performance.now() - this.#readySinceMs;
    const delayMs = this.#policy.next(ranMs);
    if (delayMs === null) {
      const times = this.#policy.failedStarts;
      const message = `The engine died and could not be started again in ${times} attempts; the last one failed: ${error.message}`;
      this.#end(new EngineFailure(message, { cause: error }));
      return;
    }
    this.#isWaiting = true;
    this.#setTimer(() => {
      this.#isWaiting = false;
      this.#restarts++;
      try {
        this.#start();
      } catch (error) {
        this.#startAnother(error as Error); // too little memory for a thread may be a passing state
      }
    }, delayMs);
  }

  #giveUpThread(error: Error): void {
    this.#worker.unref();
    const limit = this.#options.terminateTimeoutMs;
    const message =
      `${error.message} It was told to end, but ${this.#worker.whyStuck} and did not within ${limit} ms; ` +
      'its memory cannot be had back, so this process has to be restarted.';
    this.#end(new WorkerStuckError(message, { cause: error }));
  }

  #end(error: Error | null): void {
    this.#stopTimer();
    this.#hasEnded = true;
    this.#options.onEnded(error);
  }

  #setTimer(call: () => void, ms: number): void {
    this.#stopTimer();
    this.#timer = setTimeout(call, ms);
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

function isReady<Info>(message: { type: string }): message is { type: 'ready'; info: Info } {
  return message.type === 'ready';
}
