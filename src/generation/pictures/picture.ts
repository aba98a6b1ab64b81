import type { RequestPicture } from '../../../callbacks/token-request.js';

/** Tokens of a picture that stand side by side in its text, in a grid. */
export interface PictureGrid {
  rows: number;
  columns: number;
}

/** A picture whose file states its placeholder in a prompt. Nothing is decoded yet. */
export interface Picture<Decoded extends DecodedPicture = DecodedPicture> {
  /** Its placeholder text in the prompt, with one token of Sight.tokenId for each of its own. */
  text: string;
  /** Runs of its tokens within the text, one after the other. */
  grids: readonly PictureGrid[];
  /**
   * Bytes that it takes at most, in addition to its file, until it has its rows, or where these are made
   * elsewhere until its request has ended.
   */
  bytes: number;
  /**
   * Decodes it, and makes it what the tower takes; or knows it from before.
   * @param salt only pictures of the same one share what is known and kept; default 0n
   * @throws InvalidRequestError for a file that is damaged; PicturesBusyError, PictureDecoderError; the signal's reason
   */
  decode(signal: AbortSignal | undefined, salt?: bigint): Promise<Decoded>;
}

interface SpelledPicture {
  /** Ids from the vocabulary's size on that spell what its rows are made of, one for each of its tokens [count]. */
  ids: Int32Array;
}

/** A picture whose rows are made here. */
export interface SeenPicture extends SpelledPicture {
  /**
   * Rows for its tokens, [count x width]: those that are kept, or new ones.
   * @throws RequestError where its tower fails; as decode
   */
  rows(): Promise<Float32Array>;
}

/** A picture whose rows are made by the process that runs its request. */
export interface SentPicture extends SpelledPicture {
  sent: RequestPicture;
}

export type DecodedPicture = SeenPicture | SentPicture;

/** What a model that sees makes of pictures. */
export interface Sight {
  /** Text of the special token that the chat template writes for a picture. */
  readonly placeholder: string;
  /** Token that represents each token of a picture in its text. */
  readonly tokenId: number;
  /**
   * Reads the header of a picture's file.
   * @param place its place in the request
   * @throws InvalidRequestError for a file that is no picture, or too large
   */
  look(file: Uint8Array, place: string): Picture;
}
