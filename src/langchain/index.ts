/**
 * Models of this process for LangChain.js:
 *
 *   const answer = await chatModel(skein).invoke('Hello!');
 */
export { chatModel, type SkeinCallOptions, type SkeinChatModel, type SkeinSettings } from './chat-model.js';
export { embeddings } from './embeddings.js';
