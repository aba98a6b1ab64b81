/**
 * A listener that is called at once with each piece: it is called for the requests of an iteration one after
 * the other, so a slow listener keeps the others waiting. An error that it throws goes to the host's onError;
 * the listener gets the next piece all the same.
 */
export interface PieceListener<Piece> {
  /** Called with each piece. The last piece has a finish reason; nothing comes after it. */
  onPiece(piece: Piece): void;
  /** Called instead of a last piece, when the sequence failed; nothing comes after it. */
  onError(error: unknown): void;
  /**
   * Called where all that came so far is withdrawn: the sequence begins again, with an engine that gives another answer to the same seed.
   * Absent: what came counts, and a sequence of which something came never begins again.
   */
  onRestart?(): void;
}

/**
 * The pieces of one sequence, for one consumer. The consumer either iterates, at its own pace, with some promises for
 * each piece; or it listens, with none, and says itself when it cannot keep up:
 *
 *   for await (const piece of source) ...        leaving the loop early is leaving the source
 *
 *   source.listen({ onPiece, onError })          source.pause(), source.resume(), source.leave()
 */
export interface PieceSource<Piece> extends AsyncIterable<Piece> {
  /** Sends every piece to the listener from now on, and those already gathered at once. */
  listen(listener: PieceListener<Piece>): void;
  /**
   * Fingerprints of the engines elsewhere that answer it, in order: several where one went on for another. A new list when
   * there is one more. Absent: the engine of this process, or none yet.
   */
  readonly engines?: readonly string[] | undefined;
  /** It waits for an engine elsewhere, and may be refused for want of one. Absent: its engine is that of this process. */
  readonly isWaiting?: boolean | undefined;
  /** Number of tokens that have gathered. */
  readonly numGathered: number;
  /**
   * Lets pieces gather until `resume`, when they come as one piece, or as several where it would be long. The request's
   * length bounds them.
   */
  pause(): void;
  resume(): void;
  /**
   * Leaves the sequence: nothing more comes, and a sequence that has not ended is cancelled. `isWhole`: the
   * consumer has all that it wanted, as after a stop string, so that watchers see an end and not a
   * cancellation.
   */
  leave(isWhole?: boolean): void;
}
