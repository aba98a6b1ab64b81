/**
 * Takes pieces in the very call that brings them: all of an iteration's requests are told one after the other, so what a
 * listener does keeps the others waiting. What it throws goes to the host's onError; it gets the next piece all the same.
 */
export interface PieceListener<Piece> {
  /** The last piece has a finish reason; nothing comes after it. */
  onPiece(piece: Piece): void;
  /** Instead of a last piece; nothing comes after it. */
  onError(error: unknown): void;
}

/**
 * The pieces of one sequence, for one consumer. It either iterates, at its own pace, with some promises for each piece; or it
 * listens, with none, and says itself when it cannot keep up:
 *
 *   for await (const piece of source) ...        leaving the loop early is leaving the source
 *
 *   source.listen({ onPiece, onError })          source.pause(), source.resume(), source.leave()
 */
export interface PieceSource<Piece> extends AsyncIterable<Piece> {
  /** Sends every piece to the listener from now on, and what there is already at once. */
  listen(listener: PieceListener<Piece>): void;
  /** Tokens that have gathered. */
  readonly numGathered: number;
  /** Pieces gather until `resume`, and are one piece then, or several where it would be long; the request's length bounds them. */
  pause(): void;
  resume(): void;
  /**
   * Nothing more comes; what has not ended is cancelled. `isWhole`: all that was wanted is there, as behind a stop string, so
   * that who watches hears of an end and not of a cancellation.
   */
  leave(isWhole?: boolean): void;
}
