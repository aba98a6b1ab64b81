interface Ask {
  resolve: (droppedBlocks: number) => void;
  reject: (error: Error) => void;
}

/** Resets of the KV cache that the worker has been asked for and has not answered. */
export class CacheResets {
  readonly #asks = new Map<number, Ask>();
  #nextId = 0;

  /** `post` sends the question; false: there is no worker, and so no cache to reset. */
  ask(post: (askId: number) => boolean): Promise<number> {
    const askId = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#asks.set(askId, { resolve, reject });
      if (post(askId)) return;
      this.#asks.delete(askId);
      resolve(0);
    });
  }

  settle(askId: number, droppedBlocks: number): void {
    this.#asks.get(askId)?.resolve(droppedBlocks);
    this.#asks.delete(askId);
  }

  /** No worker is left to answer. */
  failAll(reason: string): void {
    for (const { reject } of this.#asks.values()) reject(new Error(`The cache was not reset: ${reason}`));
    this.#asks.clear();
  }
}
