import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import type { ComputeOptions } from '../../host/batch/items-host.js';
import type { EncoderHead } from '../../models/encoder-config.js';
import type { EncoderCodec } from './encoder-codec.js';
import type { PictureEncoder } from './picture-encoder.js';

/** The encoder's engine, as far as texts need it. */
export interface RowEngine {
  /** Computes one row for each sequence. @throws as EncoderHost.encode */
  encode(sequences: readonly EncoderSequence[], options?: ComputeOptions): Promise<Float32Array[]>;
}

/** An encoder that is ready to embed or score texts. */
export interface EncoderModel {
  codec: Pick<EncoderCodec, 'single' | 'pairs' | 'unweighted'>;
  engine: RowEngine;
  head: EncoderHead;
  /** Longest input in tokens, special tokens included. */
  maxSeqLen: number;
  vocabSize: number;
  /** Number of values of an embedding, or of labels; 1 for scores. */
  outputWidth: number;
  /** What embeds pictures; absent or null: the model reads texts alone. */
  pictures?: PictureEncoder | null | undefined;
  /** Why it takes no pictures, though its files have a part for them. */
  whyBlind?: string | undefined;
}
