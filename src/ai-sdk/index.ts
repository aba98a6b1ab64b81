/**
 * Models of this process for Vercel's AI SDK:
 *
 *   const { text } = await generateText({ model: languageModel(skein), prompt: 'Hello!' });
 */
export { embeddingModel, rerankingModel } from './encoder-models.js';
export { languageModel } from './language-model.js';
