/** What is heard of a worker. */
export interface LinkEvents<Message> {
  onMessage: (message: Message) => void;
  /** The worker is gone, after its last message, and its memory is free. `error` is null where it ended as it was asked to. */
  onExit: (error: Error | null) => void;
}

/** A worker's heartbeat as the host reads it. */
export interface BeatReader {
  /** Beats since the start; wraps around. */
  readonly beats: number;
  /** It has nothing to do and waits. */
  readonly isAsleep: boolean;
}

/**
 * One life of a worker that runs an engine, whatever it is: a thread of this process, or a process of its own. The worker is
 * started by the constructor, and a link is never used for another one.
 */
export interface WorkerLink<Command> {
  /** What a sentence calls the worker, at its beginning. */
  readonly subject: string;
  /** Of the worker's process; null where it is a thread of this one. */
  readonly pid: number | null;
  readonly heartbeat: BeatReader;
  /**
   * Sends a message and wakes the worker. Throws where the message cannot be copied to it; then nothing was sent.
   * @param transfer buffers of the message that become the worker's where it is a thread; to a process they are copied
   */
  post(message: Command | { type: 'shutdown' }, transfer?: readonly ArrayBuffer[]): void;
  /** Hands on what the worker's messages are so far, and nothing of what it sends from now on. */
  desert(): void;
  /** Ends the worker in the middle of whatever it does. onExit tells when it is gone. */
  terminate(): void;
  /** Why a worker that was told to end may not have: the end of a sentence. */
  readonly whyStuck: string;
  /** Keeps nobody waiting for a worker that does not end. */
  unref(): void;
}
