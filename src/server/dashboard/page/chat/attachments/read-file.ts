import {
  type PictureHeader,
  pictureHeader,
  uprightSize,
} from '../../../../../../models/images/files/picture-header.js';
import { PICTURE_TYPES, pictureKind } from '../../../../../../models/images/files/picture-kind.js';
import { PictureError } from '../../../../../../models/images/picture-error.js';
import { beginningOf, decodedText } from '../../../../../texts/file-text.js';
import { newId } from '../stored-conversation.js';
import { type AttachedText, type Attachment, bytesWords, type Picture } from './attachment.js';
import { AttachmentProblem, quoted } from './attachment-problem.js';
import { ATTACHMENT_LIMITS as LIMITS } from './limits.js';
import { readPdf } from './pdf/read-pdf.js';

/** Bytes in which the kind of a file is looked for. */
const HEAD_BYTES = 1024;

export interface ReadingOptions {
  /** The sentence that refuses pictures; null: the model takes them. */
  whyNoPictures: string | null;
  /** Called with the share that is read, from 0 to 1. */
  onProgress(share: number): void;
  /** Ends the reading, which then throws anything. */
  signal: AbortSignal;
}

/**
 * Reads a file that the reader wants to attach. What it is its first bytes tell, not its name.
 * @throws AttachmentProblem where it is not taken
 */
export async function readFile(file: File, options: ReadingOptions): Promise<Attachment> {
  const { name } = file;
  if (file.size === 0) throw new AttachmentProblem(`${quoted(name)} is empty.`);
  const head = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer());
  if (isPdf(head)) return pdfOf(file, options);
  if (!isPictureFile(head)) return textOf(file);
  if (options.whyNoPictures !== null) {
    throw new AttachmentProblem(`${quoted(name)} is a picture: ${options.whyNoPictures}`);
  }
  return pictureOf(file, options);
}

/** Some writers put a few bytes in front of it. */
const isPdf = (head: Uint8Array) => String.fromCharCode(...head).includes('%PDF-');

function isPictureFile(head: Uint8Array): boolean {
  try {
    pictureKind(head);
    return true;
  } catch (error) {
    if (error instanceof PictureError) return false;
    throw error;
  }
}

async function pictureOf(file: File, { onProgress, signal }: ReadingOptions): Promise<Picture> {
  const { name, size: bytes } = file;
  mayHave(file, LIMITS.maxFileBytes);
  const header = headerOf(name, new Uint8Array(await file.arrayBuffer()));
  const type = PICTURE_TYPES[header.kind];
  const blob = new Blob([file], { type });
  await checkShown(name, blob);
  const content = await base64Of(blob, onProgress, signal);
  return { kind: 'picture', id: newId(), name, bytes, type, ...uprightSize(header), content };
}

/** What the server would say of a picture is said before it is sent. */
function headerOf(name: string, bytes: Uint8Array): PictureHeader {
  try {
    return pictureHeader(bytes, LIMITS);
  } catch (error) {
    if (error instanceof PictureError) throw new AttachmentProblem(`${quoted(name)}: ${error.message}`);
    throw error;
  }
}

async function checkShown(name: string, blob: Blob): Promise<void> {
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  try {
    await image.decode();
  } catch {
    throw new AttachmentProblem(`${quoted(name)} is damaged: this browser cannot show it.`);
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

async function pdfOf(file: File, { onProgress, signal }: ReadingOptions): Promise<AttachedText> {
  mayHave(file, LIMITS.maxPdfBytes);
  const { text, part } = await readPdf(file.name, await file.arrayBuffer(), onProgress, signal);
  return attachedText(file, text, part);
}

async function textOf(file: File): Promise<AttachedText> {
  mayHave(file, LIMITS.maxTextBytes);
  const text = decodedText(new Uint8Array(await file.arrayBuffer()));
  if (text === null) {
    throw new AttachmentProblem(
      `${quoted(file.name)} cannot be attached: it is no picture (JPEG, PNG, WebP, GIF), no PDF, and no plain text in UTF-8.`,
    );
  }
  const taken = beginningOf(text, LIMITS.maxCharacters);
  const of = `of ${text.length.toLocaleString('en')} characters`;
  const part = taken.length === text.length ? '' : `the first ${taken.length.toLocaleString('en')} ${of}`;
  return attachedText(file, taken, part);
}

function attachedText({ name, size }: File, content: string, part: string): AttachedText {
  const { length: characters } = content;
  return { kind: 'text', id: newId(), name, bytes: size, part, characters, tokens: null, content };
}

function mayHave({ name, size }: File, most: number): void {
  if (size <= most) return;
  throw new AttachmentProblem(
    `${quoted(name)} has ${bytesWords(size)}, and a file of its kind may have ${bytesWords(most)}.`,
  );
}

/**
 * The bytes of a file in base64.
 * @param onProgress called with the share that is read, from 0 to 1
 * @throws where the file cannot be read any more, and when the signal is given
 */
function base64Of(blob: Blob, onProgress: (share: number) => void, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onprogress = ({ loaded, total }) => onProgress(loaded / total);
    reader.onload = () => {
      const url = reader.result as string;
      resolve(url.slice(url.indexOf(',') + 1));
    };
    reader.onerror = () => reject(reader.error);
    reader.onabort = () => reject(signal.reason);
    signal.addEventListener('abort', () => reader.abort());
    reader.readAsDataURL(blob);
  });
}
