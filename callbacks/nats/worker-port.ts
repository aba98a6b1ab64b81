import type {
  Beat,
  BlocksAnswer,
  BlocksMessage,
  FramesMessage,
  HoldAnswer,
  HoldMessage,
  StopMessage,
  WorkItem,
} from './messages.js';

/** A request that was taken out of the stream, for the time being. */
export interface Delivery {
  item: WorkItem;
  /** It is done with, as far as the stream goes. */
  ack(): void;
  /** Somebody else may have it. */
  giveBack(): void;
}

/** What a worker needs of the queue's transport. */
export interface WorkerPort {
  /**
   * Asks for requests, which come through WorkerListener.onWork. Resolves with the number of those that did not come
   * after all, after a while or an error. Never rejects.
   */
  pull(max: number): Promise<number>;
  /** Ends all pulls. */
  stopPulling(): void;
  /** @throws where a frame is longer than the NATS server takes. */
  send(gateway: string, message: FramesMessage): void;
  /** Longest message in bytes. */
  readonly maxBytes: number;
  /** null: nobody answered. */
  hold(gateway: string, message: HoldMessage): Promise<HoldAnswer | null>;
  beat(beat: Beat): void;
  /** Asks another worker for a part of the blocks that it keeps; null: nobody answered. */
  fetchBlocks(worker: string, message: BlocksMessage): Promise<BlocksAnswer | null>;
}

export interface WorkerListener {
  onWork(delivery: Delivery): void;
  onStop(message: StopMessage): void;
  /** Another worker asks for a part of the blocks that this one keeps. */
  onBlocks(message: BlocksMessage): BlocksAnswer;
}
