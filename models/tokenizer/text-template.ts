import { type ComponentJson, flattenComponents, type TokenizerJson } from './tokenizer-json.js';

/** Tokens around and between texts, with token types: the post-processor of tokenizer.json. */
export interface TextTemplate {
  single: readonly TemplatePiece[];
  pair: readonly TemplatePiece[];
}

/** A piece of a template: special tokens, or the place of a text (0 or 1). */
export type TemplatePiece = { tokens: readonly number[]; type: number } | { text: 0 | 1; type: number };

/** Tokens and types of texts within their template. */
export interface TemplatedText {
  tokenIds: Int32Array;
  tokenTypes: Int32Array;
}

const first: TemplatePiece = { text: 0, type: 0 };
const second: TemplatePiece = { text: 1, type: 1 };

/** Tokens at the ends of texts and between two, for tokenizers without a post-processor. */
export interface EndTokens {
  bos: number | null;
  eos: number | null;
  sep: number | null;
}

/** The template of a tokenizer. @param ends those of its flags, which say in a GGUF what a post-processor says elsewhere */
export function textTemplate(json: TokenizerJson, ends?: EndTokens): TextTemplate {
  if (ends !== undefined && (json.post_processor ?? null) === null) return templateOfEnds(ends);
  for (const part of flattenComponents(json.post_processor)) {
    if (part.type === 'TemplateProcessing') {
      const single = templatePieces(part, 'single');
      return { single, pair: part.pair ? templatePieces(part, 'pair') : [...single, second] };
    }
    if (part.type === 'BertProcessing' || part.type === 'RobertaProcessing') return processing(part);
  }
  return { single: [first], pair: [first, second] };
}

/** BOS a EOS, and BOS a EOS SEP b EOS, as llama.cpp joins them. */
function templateOfEnds({ bos, eos, sep }: EndTokens): TextTemplate {
  const piece = (id: number | null): TemplatePiece[] => (id === null ? [] : [{ tokens: [id], type: 0 }]);
  const single = [...piece(bos), first, ...piece(eos)];
  return { single, pair: [...single, ...piece(sep), { ...second, type: 0 }, ...piece(eos)] };
}

/**
 * Template of a post-processor, such as [CLS] a [SEP] b [SEP] with the types 0 and 1; RoBERTa has a second separator
 * between texts and one type.
 */
function processing(part: ComponentJson): TextTemplate {
  const [cls, sep] = [part.cls, part.sep] as [[string, number], [string, number]];
  const isRoberta = part.type === 'RobertaProcessing';
  const type = isRoberta ? 0 : 1;
  const single: TemplatePiece[] = [{ tokens: [cls[1]], type: 0 }, first, { tokens: [sep[1]], type: 0 }];
  const between: TemplatePiece[] = isRoberta ? [{ tokens: [sep[1]], type }] : [];
  return { single, pair: [...single, ...between, { text: 1, type }, { tokens: [sep[1]], type }] };
}

interface TemplateItem {
  SpecialToken?: { id: string; type_id: number };
  Sequence?: { id: 'A' | 'B'; type_id: number };
}

function templatePieces(part: ComponentJson, key: 'single' | 'pair'): TemplatePiece[] {
  const specials = part.special_tokens as Record<string, { ids: number[] }> | undefined;
  return (part[key] as TemplateItem[]).flatMap(
    ({ SpecialToken: special, Sequence: text }): TemplatePiece[] => {
      if (text) return [{ text: text.id === 'A' ? 0 : 1, type: text.type_id }];
      return special ? [{ tokens: specials?.[special.id]?.ids ?? [], type: special.type_id }] : [];
    },
  );
}

/** Number of tokens that a template adds to its texts. */
export function templateLength(pieces: readonly TemplatePiece[]): number {
  return pieces.reduce((sum, piece) => sum + ('tokens' in piece ? piece.tokens.length : 0), 0);
}

/** Puts one text, or two, into a template. */
export function applyTemplate(
  template: TextTemplate,
  texts: readonly [Int32Array] | readonly [Int32Array, Int32Array],
): TemplatedText {
  const pieces = texts.length === 1 ? template.single : template.pair;
  const length = templateLength(pieces) + texts.reduce((sum, text) => sum + text.length, 0);
  const tokenIds = new Int32Array(length);
  const tokenTypes = new Int32Array(length);
  let at = 0;
  for (const piece of pieces) {
    const tokens = 'tokens' in piece ? piece.tokens : texts[piece.text]!;
    tokenIds.set(tokens, at);
    tokenTypes.fill(piece.type, at, at + tokens.length);
    at += tokens.length;
  }
  return { tokenIds, tokenTypes };
}

/**
 * Cuts texts until they fit into `room` tokens: a single one at a side, two at their ends, the longer one first, as longest_first
 * of Hugging Face's tokenizers does.
 */
export function truncateTexts<T extends readonly Int32Array[]>(
  texts: T,
  room: number,
  side: 'start' | 'end' = 'end',
): T {
  if (texts.reduce((sum, text) => sum + text.length, 0) <= room) return texts;
  if (texts.length === 1) {
    const [text] = texts as unknown as [Int32Array];
    const cut = side === 'end' ? text.subarray(0, room) : text.subarray(text.length - room);
    return [cut] as unknown as T;
  }
  const lengths = [texts[0]!.length, texts[1]!.length];
  const shorter = Math.min(...lengths);
  const half = Math.floor(room / 2);
  // The longer text gets the room that the shorter leaves, or they share evenly and the odd token goes to the longer.
  const [least, most] = 2 * shorter <= room ? [shorter, room - shorter] : [half, room - half];
  const firstIsLonger = lengths[0]! > lengths[1]!;
  const [a, b] = firstIsLonger ? [most, least] : [least, most];
  return [texts[0]!.subarray(0, a), texts[1]!.subarray(0, b)] as unknown as T;
}
