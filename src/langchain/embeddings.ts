import { Embeddings } from '@langchain/core/embeddings';
import type { EmbedOptions } from '../encoding/embed.js';
import type { Encoder } from '../library/encoder.js';

/**
 * A loaded encoder as LangChain's embeddings. Queries and documents have the prompts that the model has for each. @param options those of
 * `Encoder.embed`, such as `dimensions`, for all calls
 */
export function embeddings(encoder: Encoder, options: EmbedOptions = {}): Embeddings {
  return new SkeinEmbeddings(encoder, options);
}

class SkeinEmbeddings extends Embeddings {
  readonly #encoder: Encoder;
  readonly #options: EmbedOptions;

  constructor(encoder: Encoder, options: EmbedOptions) {
    super({});
    this.#encoder = encoder;
    this.#options = options;
  }

  override async embedDocuments(documents: string[]): Promise<number[][]> {
    if (documents.length === 0) return [];
    const rows = await this.#encoder.embed(documents, { inputType: 'document', ...this.#options });
    return rows.map((row) => Array.from(row));
  }

  override async embedQuery(query: string): Promise<number[]> {
    const [row] = await this.#encoder.embed([query], { inputType: 'query', ...this.#options });
    return Array.from(row!);
  }
}
