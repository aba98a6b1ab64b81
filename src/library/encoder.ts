import {
  bestLabels,
  type ClassifiedInput,
  type ClassifyOptions,
  classify,
  type LabelScore,
  scoresInTurns,
} from '../encoding/classify.js';
import { type EmbedOptions, embed } from '../encoding/embed.js';
import type { EncoderInput } from '../encoding/encoder-codec.js';
import { ranking, type ScoreOptions, scorePairs } from '../encoding/score.js';
import {
  embedSparse,
  embedTokens,
  type SparseEmbedding,
  type TokenOptions,
} from '../encoding/token-outputs.js';
import { inPlainNames } from '../options/flag-names.js';
import { type EncoderOptions, loadEncoderModel } from '../serving/load-encoder-model.js';
import type { EncoderInfoOfModel, RunningModel } from '../serving/running-model.js';
import { type ImageInput, withPictureFiles } from './given-pictures.js';
import { warnOfFallback } from './loading-warnings.js';
import {
  checkedClassification,
  checkedDocuments,
  checkedEmbedding,
  checkedTokenOutput,
  checkRerankOptions,
  checkScoreOptions,
} from './options/encoder-call-options.js';
import { checkEncoderOptions } from './options/model-options.js';
import { checkRanksOptions } from './ranks-check.js';

/** A document of a ranking. */
export interface RankedDocument {
  /** Index of the document in the given list. */
  index: number;
  score: number;
}

/**
 * An encoder in this process: embeddings, scores of pairs of texts, or scores of labels. Calls share batches.
 *
 *   const encoder = await Encoder.load({ model: './all-MiniLM-L6-v2' });
 *   const [a, b] = await encoder.embed(['The cat sits outside.', 'A man plays the guitar.']);
 *   await encoder.close();
 */
export class Encoder {
  readonly #loaded: RunningModel<'encoder'>;

  private constructor(loaded: RunningModel<'encoder'>) {
    this.#loaded = loaded;
  }

  /**
   * Loads a model. At the first load it is built into the cache.
   * @throws ParameterError for an option that is unknown or out of range; CheckpointError, EngineError, AddonError.
   */
  static async load(options: EncoderOptions): Promise<Encoder> {
    checkEncoderOptions(options);
    checkRanksOptions(options);
    const loaded = await loadEncoderModel(options).catch((error: unknown) => {
      throw inPlainNames(error);
    });
    warnOfFallback(loaded.info);
    return new Encoder(loaded);
  }

  /** The loaded model and how it runs. */
  get info(): EncoderInfoOfModel {
    return this.#loaded.info;
  }

  /** Requests running and waiting right now. */
  get counts(): { running: number; waiting: number } {
    return this.#loaded.statistics.counts();
  }

  /**
   * Computes the embedding of each text; token ids are taken as they are. Models like CLIP and SigLIP embed pictures too, into the same space.
   * @param options onTokens is called once with the number of tokens of all inputs, before they are computed
   * @throws InvalidRequestError, QueueFullError, RequestError, HostClosedError; the reason of the signal.
   */
  async embed(
    inputs: string | ImageInput | readonly (EncoderInput | ImageInput)[],
    options: EmbedOptions & { onTokens?: ((tokens: number) => void) | undefined } = {},
  ): Promise<Float32Array[]> {
    const given = await withPictureFiles(checkedEmbedding(inputs, options));
    const { onTokens, ...others } = options;
    return (await embed(this.#loaded.model, given, others, onTokens)).embeddings;
  }

  /**
   * Computes the weights of the tokens of each text, for models like BGE-M3 that have a layer for it (`sparse_linear`): a search by words
   * adds up the products of those that two texts share.
   * @throws as embed
   */
  async embedSparse(
    texts: string | readonly EncoderInput[],
    options: TokenOptions = {},
  ): Promise<SparseEmbedding[]> {
    const inputs = checkedTokenOutput('embedSparse', texts, options);
    return (await embedSparse(this.#loaded.model, inputs, options)).embeddings;
  }

  /**
   * Computes a vector of length 1 of each token of each text but the first, for models like BGE-M3 that have a layer for it
   * (`colbert_linear`): a search by late interaction adds up, over the vectors of a query, the greatest product with one of a document's.
   * @throws as embed
   */
  async embedTokens(
    texts: string | readonly EncoderInput[],
    options: TokenOptions = {},
  ): Promise<Float32Array[][]> {
    const inputs = checkedTokenOutput('embedTokens', texts, options);
    return (await embedTokens(this.#loaded.model, inputs, options)).embeddings;
  }

  /**
   * Scores how well each document answers the query, in the documents' order: a cross-encoder's score, else the cosine.
   * @throws as embed
   */
  async score(
    query: string,
    documents: string | readonly string[],
    options: ScoreOptions = {},
  ): Promise<number[]> {
    checkScoreOptions(options);
    return this.#scores(query, documents, options);
  }

  /** Sorts the documents by their scores, the best first, and returns the first `top`. @throws as embed */
  async rerank(
    query: string,
    documents: readonly string[],
    options: ScoreOptions & { top?: number | undefined } = {},
  ): Promise<RankedDocument[]> {
    checkRerankOptions(options);
    const { top, ...ofScore } = options;
    const scores = await this.#scores(query, documents, ofScore);
    return ranking(scores, top).map((index) => ({ index, score: scores[index]! }));
  }

  async #scores(
    query: string,
    documents: string | readonly string[],
    options: ScoreOptions,
  ): Promise<number[]> {
    const texts = checkedDocuments(query, documents);
    const pairs = texts.map((document) => [query, document] as const);
    const names = { param: 'documents', pair: (i: number) => `document ${i} with the query` };
    return (await scorePairs(this.#loaded.model, pairs, options, names)).scores;
  }

  /**
   * Gives each text, or pair of texts, the score of each label, the greatest first: shares that add up to 1, or, where any number of labels
   * may be right, a score from 0 to 1 each, as the model's `problem_type` says.
   * @throws as embed
   */
  async classify(
    texts: string | readonly ClassifiedInput[],
    options: ClassifyOptions = {},
  ): Promise<LabelScore[][]> {
    const inputs = checkedClassification(texts, options);
    const classified = await classify(this.#loaded.model, inputs, options);
    const { labels } = classified;
    return scoresInTurns(classified, (scores) =>
      bestLabels(scores).map((i) => ({ label: labels[i]!, score: scores[i]! })),
    );
  }

  /** Lets active requests end, then frees the engine; with `abort` they are cancelled. */
  async close(options: { abort?: boolean } = {}): Promise<void> {
    await this.#loaded.close(options);
  }

  /** The same as `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
