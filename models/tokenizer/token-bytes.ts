import { type ComponentJson, flattenComponents, TokenizerError } from './tokenizer-json.js';

const utf8 = new TextEncoder();
const METASPACE = '\u2581';

/** Bytes that texts of vocabulary entries stand for, by the decoder of tokenizer.json. */
export interface TokenSpelling {
  /** The bytes of a vocabulary entry. */
  bytesOf(text: string): Uint8Array;
  /** Bytes of an added token, whose text is literal. */
  bytesOfAdded(text: string): Uint8Array;
  /**
   * True where the first space of a sequence is not part of the text (SentencePiece puts one before the first word).
   */
  dropsLeadingSpace: boolean;
  /** True where an entry has a letter for each of its bytes. */
  isByteLevel: boolean;
}

/** Reads a decoder. @throws TokenizerError where its tokens have no fixed bytes, or it is unknown. */
export function tokenSpelling(decoder: ComponentJson | null): TokenSpelling {
  const parts = flattenComponents(decoder);
  const has = (type: string) => parts.some((part) => part.type === type);
  if (has('ByteLevel')) {
    return {
      bytesOf: byteLevelBytes,
      bytesOfAdded: byteLevelBytes,
      dropsLeadingSpace: false,
      isByteLevel: true,
    };
  }
  if (has('Metaspace') || has('ByteFallback') || parts.some(replacesMetaspace)) return sentencePiece(parts);
  if (has('WordPiece')) {
    const prefix = String(parts.find((part) => part.type === 'WordPiece')?.prefix ?? '##');
    const bytesOf = (text: string) =>
      utf8.encode(text.startsWith(prefix) ? text.slice(prefix.length) : ` ${text}`);
    return { bytesOf, bytesOfAdded: bytesOf, dropsLeadingSpace: true, isByteLevel: false };
  }
  if (decoder === null) {
    const bytesOf = (text: string) => utf8.encode(` ${text}`);
    return { bytesOf, bytesOfAdded: bytesOf, dropsLeadingSpace: true, isByteLevel: false };
  }
  throw new TokenizerError(
    `tokenizer.json: the decoder ${parts.map((part) => part.type).join(', ')} is not supported; ` +
      'ByteLevel, Metaspace, ByteFallback, Replace and WordPiece are.',
  );
}

function sentencePiece(parts: ComponentJson[]): TokenSpelling {
  const byteFallback = parts.some((part) => part.type === 'ByteFallback');
  const withSpaces = (text: string) => utf8.encode(text.replaceAll(METASPACE, ' '));
  return {
    bytesOf: (text) => {
      const byte = byteFallback ? /^<0x([0-9A-Fa-f]{2})>$/.exec(text) : null;
      return byte ? Uint8Array.of(Number.parseInt(byte[1]!, 16)) : withSpaces(text);
    },
    bytesOfAdded: withSpaces,
    isByteLevel: false,
    dropsLeadingSpace: parts.some(
      (part) =>
        (part.type === 'Strip' && part.content === ' ' && Number(part.start) > 0) ||
        (part.type === 'Metaspace' && part.prepend_scheme !== 'never'),
    ),
  };
}

function replacesMetaspace(part: ComponentJson): boolean {
  const pattern = part.pattern as { String?: string } | undefined;
  return part.type === 'Replace' && pattern?.String === METASPACE && part.content === ' ';
}

/**
 * Bytes by their characters in byte-level BPE, by GPT-2's table: bytes that print in Latin-1 are themselves, the others
 * (controls, space, soft hyphen) U+0100 and up, in order.
 */
const byteOfCharacter = new Map<number, number>();
for (let byte = 0, shifted = 0; byte < 256; byte++) {
  const prints = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  byteOfCharacter.set(prints ? byte : 0x100 + shifted++, byte);
}

/**
 * Bytes of a byte-level text. One with a character outside the table is literal: some added tokens contain spaces or
 * other scripts.
 */
function byteLevelBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    const byte = byteOfCharacter.get(text.charCodeAt(i));
    if (byte === undefined) return utf8.encode(text);
    bytes[i] = byte;
  }
  return bytes;
}
