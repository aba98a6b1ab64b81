/** Events of a worker. */
export interface LinkEvents<Message> {
  onMessage: (message: Message) => void;
  /**
   * Called when the worker is gone, after its last message, and its memory is free. `error` is null where it ended as
   * asked.
   */
  onExit: (error: Error | null) => void;
}

/** A worker's heartbeat as the host reads it. */
export interface BeatReader {
  /** Number of beats since the start; wraps around. */
  readonly beats: number;
  /** True while the worker has nothing to do and waits. */
  readonly isAsleep: boolean;
}

/**
 * One life of a worker that runs an engine, in a thread of this process or a process of its own. The constructor starts
 * the worker; a link is never used for another one.
 */
export interface WorkerLink<Command> {
  /** Name of the worker at the beginning of a sentence. */
  readonly subject: string;
  /** Id of the worker's process; null where the worker is a thread. */
  readonly pid: number | null;
  readonly heartbeat: BeatReader;
  /**
   * Sends a message and wakes the worker. Throws where the message cannot be copied to it; then nothing was sent.
   * @param transfer buffers of the message that become the worker's where it is a thread; to a process they are copied
   */
  post(message: Command | { type: 'shutdown' }, transfer?: readonly ArrayBuffer[]): void;
  /** Hands on what the worker's messages are so far, and nothing of what it sends from now on. */
  desert(): void;
  /** Ends the worker at once, whatever it does. onExit reports when it is gone. */
  terminate(): void;
  /** Why a worker may not have ended when asked to, as the end of a sentence. */
  readonly whyStuck: string;
  /** Lets the process exit while the worker still runs. */
  unref(): void;
}

/** Code of a model in a worker has its port too, and may send anything: what is no message is passed over. */
export function isMessage(sent: unknown): sent is { type: string } {
  return typeof sent === 'object' && sent !== null && typeof (sent as { type?: unknown }).type === 'string';
}
