import type { RerankingModelV3, RerankingModelV3CallOptions } from '@ai-sdk/provider';
import type { Encoder } from '../library/encoder.js';

/**
 * A loaded encoder as a reranking model of the AI SDK. Documents that are objects are read as JSON. `providerOptions.skein` takes the options of
 * `Encoder.rerank`, such as `instruction`.
 */
export function rerankingModel(encoder: Encoder): RerankingModelV3 {
  return new SkeinRerankingModel(encoder);
}

class SkeinRerankingModel implements RerankingModelV3 {
  readonly specificationVersion = 'v3';
  readonly provider = 'skein';
  readonly modelId: string;
  readonly #encoder: Encoder;

  constructor(encoder: Encoder) {
    this.#encoder = encoder;
    this.modelId = encoder.info.name;
  }

  async doRerank({
    documents,
    query,
    topN,
    abortSignal,
    providerOptions,
  }: RerankingModelV3CallOptions): Promise<Awaited<ReturnType<RerankingModelV3['doRerank']>>> {
    const texts =
      documents.type === 'text' ? documents.values : documents.values.map((value) => JSON.stringify(value));
    const ranked = await this.#encoder.rerank(query, texts, {
      ...providerOptions?.skein,
      ...(topN !== undefined && { top: topN }),
      ...(abortSignal && { signal: abortSignal }),
    });
    return { ranking: ranked.map(({ index, score }) => ({ index, relevanceScore: score })) };
  }
}
