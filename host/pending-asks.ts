interface Ask<Answer> {
  resolve: (answer: Answer) => void;
  reject: (error: Error) => void;
}

/** Questions that the worker was asked between two iterations and has not answered yet. */
export class PendingAsks<Answer> {
  readonly #asks = new Map<number, Ask<Answer>>();
  readonly #ofNobody: Answer;
  readonly #failure: string;
  #nextId = 0;

  /**
   * @param ofNobody the answer where there is no worker
   * @param failure what has not happened where the worker is lost, to be followed by the reason
   */
  constructor(ofNobody: Answer, failure: string) {
    this.#ofNobody = ofNobody;
    this.#failure = failure;
  }

  /** Asks the worker and resolves with its answer. `post` sends the question; false: there is no worker. */
  ask(post: (askId: number) => boolean): Promise<Answer> {
    const askId = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#asks.set(askId, { resolve, reject });
      if (post(askId)) return;
      this.#asks.delete(askId);
      resolve(this.#ofNobody);
    });
  }

  settle(askId: number, answer: Answer): void {
    this.#asks.get(askId)?.resolve(answer);
    this.#asks.delete(askId);
  }

  /** Rejects all questions, since no worker is left to answer. */
  failAll(reason: string): void {
    for (const { reject } of this.#asks.values()) reject(new Error(`${this.#failure}: ${reason}`));
    this.#asks.clear();
  }
}
