import {
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  SHARE_ENV,
  Worker,
} from 'node:worker_threads';
import { requireThreadRoom } from '../../base/address-space.js';
import { errorOf } from '../../base/error-record.js';
import { Heartbeat } from '../../callbacks/heartbeat.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';
import {
  Doorbell,
  type WorkerFailure,
  type WorkerLife,
  type WorkerMessage,
} from '../../callbacks/worker-messages.js';
import { GuideThreadHost } from '../../engine/guided/guide-thread-host.js';
import { EngineFailure } from '../engine-failure.js';
import { isMessage, type LinkEvents, type WorkerLink } from './worker-link.js';

type GuideThreadMessage = Extract<WorkerMessage, { type: 'guide-thread' }>;

/** A worker that is a thread of this process: its port, its doorbell, its heartbeat. */
export class ThreadLink<Info, Message extends { type: string }, Command> implements WorkerLink<Command> {
  readonly subject: string;
  readonly pid = null;
  readonly whyStuck = 'is in a native call';
  readonly heartbeat: Heartbeat;
  readonly #port: MessagePort;
  readonly #doorbell: Doorbell;
  readonly #worker: Worker;
  readonly #events: LinkEvents<Message | WorkerLife<Info>>;
  /** Starts and watches the guide thread for the worker, which has no event loop of its own. */
  readonly #guides = new GuideThreadHost();
  #hasClosed = false;
  #isDeserted = false;
  #error: Error | null = null;

  /**
   * @param subject what a sentence calls it, at its beginning
   * @param ports ports in the data, which become the thread's
   * @throws MemoryError, or what Node.js says, where no thread can be had.
   */
  constructor(
    script: URL,
    data: object,
    events: LinkEvents<Message | WorkerLife<Info>>,
    subject: string,
    ports: readonly MessagePort[] = [],
  ) {
    requireThreadRoom();
    this.subject = subject;
    const { port1, port2 } = new MessageChannel();
    const doorbell = Doorbell.createBuffer();
    const heartbeat = Heartbeat.createBuffer();
    this.#port = port1;
    this.#doorbell = new Doorbell(doorbell);
    this.heartbeat = new Heartbeat(heartbeat);
    this.#events = events;
    const wires: WorkerWires = { port: port2, doorbell, heartbeat };
    this.#worker = new Worker(script, {
      workerData: { ...data, ...wires },
      transferList: [port2, ...ports],
      name: 'skein-engine',
      // TensorFlow's C++ part must read the process's own environment.
      env: SHARE_ENV,
    });
    this.#port.on('message', (message: Message | WorkerLife<Info>) => this.#handle(message));
    // 'exit' follows at once, and only then is the thread's memory free.
    this.#worker.on('error', (error) => {
      this.#error = error instanceof Error ? error : new Error(String(error));
    });
    this.#worker.on('exit', (code) => this.#handleExit(code));
  }

  post(message: Command | { type: 'shutdown' }, transfer: readonly ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer);
    this.#doorbell.ring();
  }

  /** Delivers what the worker has sent so far, and ignores what it sends from now on. */
  desert(): void {
    this.#drain();
    this.#isDeserted = true;
  }

  /** Ends the thread once it returns from its native call; until then it continues. */
  terminate(): void {
    void this.#worker.terminate();
  }

  /** Lets the process exit while the thread still runs. */
  unref(): void {
    this.#worker.unref();
    this.#port.unref();
  }

  #handle(message: Message | WorkerLife<Info>): void {
    if (this.#isDeserted || !isMessage(message)) return;
    if (isGuideThread(message)) {
      if (message.setup === null) this.#guides.stop();
      else this.#guides.start(message.setup);
      return;
    }
    if (isFailed(message)) {
      this.#error = errorOf(message.error);
      return;
    }
    if (message.type === 'closed') this.#hasClosed = true;
    this.#events.onMessage(message);
  }

  /** Delivers messages still in the port: the worker's last ones may lie there when its end is announced. */
  #drain(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined) return;
      this.#handle(received.message as Message | WorkerLife<Info>);
    }
  }

  #handleExit(code: number): void {
    this.#drain();
    this.#port.close();
    this.#guides.stop();
    const unexpected = () => new EngineFailure(`${this.subject} ended unexpectedly with exit code ${code}.`);
    this.#events.onExit(this.#hasClosed ? null : (this.#error ?? unexpected()));
  }
}

function isGuideThread(message: { type: string }): message is GuideThreadMessage {
  return message.type === 'guide-thread';
}

function isFailed(message: { type: string }): message is WorkerFailure {
  if (message.type !== 'failed') return false;
  const { text } = ((message as { error?: unknown }).error ?? {}) as { text?: unknown };
  return typeof text === 'string' || Array.isArray(text);
}
