/**
 * Models of this process for Vercel's AI SDK:
 *
 *   const { text } = await generateText({ model: languageModel(skein), prompt: 'Hello!' });
 */
export { embeddingModel } from './embedding-model.js';
export { languageModel } from './language-model.js';
export { rerankingModel } from './reranking-model.js';
