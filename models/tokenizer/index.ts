export { type StopPush, StopStringMatcher, type StopStringOptions } from './stop-strings.js';
export { StreamingDetokenizer, type StreamingDetokenizerOptions } from './streaming-detokenizer.js';
export { type DecodeOptions, type EncodeOptions, type TextSegment, Tokenizer } from './tokenizer.js';
export { TokenizerError } from './tokenizer-json.js';
