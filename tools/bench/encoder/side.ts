/** What a side was timed with. */
export interface Answer {
  /** Of all calls together. */
  seconds: number;
  /** The embedding of the first text. */
  first: number[];
}

/** A side whose model is loaded. */
export interface OpenSide {
  /** Name and version of what computes. */
  version: string;
  /** Embeds the texts of each call, one call after the other, and tokenizes them itself. */
  embed(calls: readonly (readonly string[])[]): Promise<Answer>;
  close(): Promise<void>;
}

export type Precision = 'f32' | 'bf16' | 'int8';

/** Who embeds, and in which numbers. */
export interface Side {
  name: string;
  precision: Precision;
  isSkein: boolean;
  /** @param folder a shape's folder, as make_models.py fills it @throws where the side cannot run this model */
  open(folder: string): Promise<OpenSide>;
}
