/**
 * Holds answers back until those of all earlier requests are out, where a model preserves the order of its requests.
 *
 *   begin a, b, c    settle b -> []    settle a -> [a, b]    settle c -> [c]
 */
export class ReplyOrder<Request, Answer> {
  /** In order of arrival; undefined: not settled yet. */
  readonly #open = new Map<Request, { answer: Answer } | undefined>();

  begin(request: Request): void {
    this.#open.set(request, undefined);
  }

  /** The answers that may go now, in order. */
  settle(request: Request, answer: Answer): Answer[] {
    this.#open.set(request, { answer });
    const out: Answer[] = [];
    for (const [first, settled] of this.#open) {
      if (settled === undefined) break;
      out.push(settled.answer);
      this.#open.delete(first);
    }
    return out;
  }
}
