interface Ask {
  resolve: (droppedBlocks: number) => void;
  reject: (error: Error) => void;
}

/** Resets of the KV cache that the worker was asked for and has not answered yet. */
export class CacheResets {
  readonly #asks = new Map<number, Ask>();
  #nextId = 0;

  /**
   * Asks the worker for a reset and resolves with its answer. `post` sends the question; false: there is no worker, and
   * so no cache.
   */
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

  /** Rejects all resets, since no worker is left to answer. */
  failAll(reason: string): void {
    for (const { reject } of this.#asks.values()) reject(new Error(`The cache was not reset: ${reason}`));
    this.#asks.clear();
  }
}
