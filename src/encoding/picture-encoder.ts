/** A picture to be embedded in place of a text. */
export interface PictureInput {
  /** Its file; or that in base64, in a data: URL or by itself; or its address. */
  picture: Uint8Array | string;
  /** Its place in the request. */
  place: string;
}

/** A picture whose header has been read. */
export interface EncodedPicture {
  /** Tokens that it counts as: rows that its tower computes. */
  tokens: number;
  /** Bytes that it takes until it has its row, in addition to its file. */
  bytes: number;
  /**
   * Decodes it, for its embedding.
   * @throws InvalidRequestError for a file that is damaged; PicturesBusyError, PictureDecoderError; the signal's reason
   */
  decode(signal: AbortSignal | undefined): Promise<DecodedEncoding>;
}

export interface DecodedEncoding {
  /**
   * Its embedding, of as many values as those of texts: one that is kept, or a new one.
   * @param salt only pictures of the same one share rows; default 0n @throws RequestError where its tower fails
   */
  row(salt?: bigint): Promise<Float32Array>;
}

/** What makes embeddings of pictures, in the space of those of texts. */
export interface PictureEncoder {
  /**
   * Reads the header of a picture's file.
   * @param place its place in the request
   * @throws InvalidRequestError for a file that is no picture, or too large
   */
  look(file: Uint8Array, place: string): EncodedPicture;
}
