import { PICTURE_LIMITS } from '../../../../../../models/images/picture-limits.js';
import { type Attachment, bytesWords, contentLength, isPicture } from './attachment.js';

/** What the files of a conversation may be: all of them are sent with each question. */
export const ATTACHMENT_LIMITS = {
  ...PICTURE_LIMITS,
  /** Files of a question. */
  maxFiles: 16,
  /** Bytes of a file of plain text, and of a PDF. */
  maxTextBytes: 4e6,
  maxPdfBytes: 50e6,
  /** Pages of a PDF that are read, and the milliseconds that this may take. */
  maxPdfPages: 500,
  pdfTimeLimitMs: 60_000,
  /** Characters that are taken of a file: as many as the server counts the tokens of. */
  maxCharacters: 2 ** 18,
  /** Characters of the contents of all files together: the body of a request may have 16 MiB. */
  maxContent: 16.4e6,
} as const;

/** The sentence that refuses the files of a conversation; null: they can be sent. */
export function tooMuch(attachments: readonly Attachment[]): string | null {
  const { maxPictures, maxFileBytes, maxContent } = ATTACHMENT_LIMITS;
  const pictures = attachments.filter(isPicture);
  if (pictures.length > maxPictures) {
    return `A conversation may have ${maxPictures} pictures, and with this it would have ${pictures.length}.`;
  }
  const bytes = pictures.reduce((sum, picture) => sum + picture.bytes, 0);
  if (bytes > maxFileBytes) {
    return `The pictures of a conversation may have ${bytesWords(maxFileBytes)} together, and with this they would have ${bytesWords(bytes)}.`;
  }
  const content = attachments.reduce((sum, attachment) => sum + contentLength(attachment), 0);
  if (content <= maxContent) return null;
  return 'The files of this conversation are too long for one request: begin a new chat, or attach less.';
}
