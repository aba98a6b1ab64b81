interface File {
  /** Under which its content is kept; no other of the conversation has it. */
  id: string;
  name: string;
  /** Bytes of the file that was attached. */
  bytes: number;
}

/** A picture of a question. */
export interface Picture extends File {
  kind: 'picture';
  /** One of `PICTURE_TYPES`. */
  type: string;
  /** Pixels, once it has been turned upright. */
  width: number;
  height: number;
  /** The file in base64; null: it is kept elsewhere, or the browser had no room for it. */
  content: string | null;
}

/** The text of a file of a question. */
export interface AttachedText extends File {
  kind: 'text';
  /** The part of the file that this is, as in "pages 1 to 500 of 612"; '': all of it. */
  part: string;
  /** Length of the text, in UTF-16 units. */
  characters: number;
  /** Its tokens, as the model counts them that it was attached for; null: not counted. */
  tokens: number | null;
  /** The text; null: it is kept elsewhere, or the browser had no room for it. */
  content: string | null;
}

export type Attachment = Picture | AttachedText;

export const isPicture = (attachment: Attachment): attachment is Picture => attachment.kind === 'picture';

/** Length in base64 of a number of bytes. */
export const base64Length = (bytes: number): number => 4 * Math.ceil(bytes / 3);

/** Characters of its content. */
export function contentLength(attachment: Attachment): number {
  return isPicture(attachment) ? base64Length(attachment.bytes) : attachment.characters;
}

/** The file of a picture, to be shown; null where it is not here. */
export function fileOf({ type, content }: Picture): Blob | null {
  if (content === null) return null;
  const binary = atob(content);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return new Blob([bytes], { type });
}

/** A number of bytes, as in "1.2 MB". */
export function bytesWords(bytes: number): string {
  if (bytes < 1000) return `${bytes} bytes`;
  const [unit, name] = bytes < 1e6 ? [1e3, 'kB'] : [1e6, 'MB'];
  const value = bytes / unit;
  return `${value.toFixed(value < 10 ? 1 : 0)} ${name}`;
}

/** How large an attachment is, in a few words: a text in tokens, where they were counted. */
export function sizeWords(attachment: Attachment): string {
  if (isPicture(attachment)) return bytesWords(attachment.bytes);
  const { part, tokens, characters } = attachment;
  const size =
    tokens === null
      ? `${characters.toLocaleString('en')} characters`
      : `${tokens.toLocaleString('en')} ${tokens === 1 ? 'token' : 'tokens'}`;
  return part === '' ? size : `${size}, ${part}`;
}
