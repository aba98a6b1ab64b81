import { BaseEmbedding } from '@llamaindex/core/embeddings';
import type { MessageContentDetail } from '@llamaindex/core/llms';
import type { EmbedOptions } from '../encoding/embed.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import type { Encoder } from '../library/encoder.js';

/** Texts of a call: the encoder makes batches of them itself. */
const TEXTS_OF_A_CALL = 1024;

/**
 * A loaded encoder as LlamaIndex's embedding. Queries and documents have the prompts that the model has for each. @param options those of
 * `Encoder.embed`, such as `dimensions`, for all calls
 */
export function embedding(encoder: Encoder, options: EmbedOptions = {}): BaseEmbedding {
  return new SkeinEmbedding(encoder, options);
}

class SkeinEmbedding extends BaseEmbedding {
  readonly #encoder: Encoder;
  readonly #options: EmbedOptions;

  constructor(encoder: Encoder, options: EmbedOptions) {
    super();
    this.#encoder = encoder;
    this.#options = options;
    this.embedBatchSize = TEXTS_OF_A_CALL;
  }

  override async getTextEmbedding(text: string): Promise<number[]> {
    const [row] = await this.getTextEmbeddings([text]);
    return row!;
  }

  override getTextEmbeddings = async (texts: string[]): Promise<number[][]> => {
    if (texts.length === 0) return [];
    const rows = await this.#encoder.embed(texts, { inputType: 'document', ...this.#options });
    return rows.map((row) => Array.from(row));
  };

  override async getQueryEmbedding(query: MessageContentDetail): Promise<number[]> {
    if (query.type !== 'text')
      throw new InvalidRequestError(`A query of the type ${query.type} is not embedded; texts are.`, 'query');
    const [row] = await this.#encoder.embed([query.text], { inputType: 'query', ...this.#options });
    return Array.from(row!);
  }
}
