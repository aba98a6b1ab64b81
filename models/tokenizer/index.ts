export { tokenizerFromGguf } from './gguf-tokenizer.js';
export { type ChosenTemplates, chooseTemplates } from './named-templates.js';
export { StopAutomaton } from './stop-automaton.js';
export {
  type StopFinder,
  type StopPush,
  StopStringMatcher,
  type StopStringOptions,
  StopStrings,
} from './stop-strings.js';
export { StreamingDetokenizer, type StreamingDetokenizerOptions } from './streaming-detokenizer.js';
export { TemplatePool } from './template-pool.js';
export {
  type DecodeOptions,
  type EncodeOptions,
  type TextSegment,
  Tokenizer,
  type TokenizerSourceFiles,
} from './tokenizer.js';
export { isGguf, readTokenizerFiles } from './tokenizer-files.js';
export { TokenizerError } from './tokenizer-json.js';
export {
  PromptTimeError,
  PromptUnitsError,
  TokenizerBusyError,
  TokenizerClosedError,
  TokenizerPool,
  type TokenizerPoolOptions,
  type TokenizerSource,
} from './tokenizer-pool.js';
