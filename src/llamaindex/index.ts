/**
 * Models of this process for LlamaIndex.TS:
 *
 *   Settings.llm = llm(skein);
 *   Settings.embedModel = embedding(encoder);
 */
export { embedding } from './embedding.js';
export { llm, type SkeinChatOptions } from './llm.js';
