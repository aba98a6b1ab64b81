import { readFile, stat } from 'node:fs/promises';
import { messageOf } from '../../base/error-text.js';
import type { ChatMessage, ChatTextPart } from '../../models/chat-message.js';
import { PictureError } from '../../models/images/picture-error.js';
import { checkBytes, PICTURE_LIMITS } from '../../models/images/picture-limits.js';
import type { EmbeddingInput } from '../encoding/embed-pictures.js';
import type { EncoderInput } from '../encoding/encoder-codec.js';
import { InvalidRequestError } from '../errors/request-errors.js';

/**
 * Messages of a program, in which parts {type: 'image', image} have become those that clients send.
 * @throws InvalidRequestError for a file that cannot be read, and for an invalid image
 */
export function withPictures(messages: readonly ChatMessage[]): Promise<ChatMessage[]> {
  return Promise.all(
    messages.map(async (message, i) => {
      const { content } = message;
      if (!Array.isArray(content) || !content.some(hasImage)) return message;
      const parts = (content as ChatTextPart[]).map((part, at) =>
        hasImage(part) ? sent(part.image, `messages[${i}].content[${at}].image`) : part,
      );
      return { ...message, content: await Promise.all(parts) };
    }),
  );
}

/** A picture to be embedded: its file's bytes, or the path of its file. */
export interface ImageInput {
  image: Uint8Array | Blob | string;
}

export const isImage = (value: unknown): value is ImageInput =>
  typeof value === 'object' && value !== null && 'image' in value;

/** Inputs of a program, with the files of pictures. @throws InvalidRequestError as withPictures */
export function withPictureFiles(inputs: readonly (EncoderInput | ImageInput)[]): Promise<EmbeddingInput[]> {
  return Promise.all(
    inputs.map(async (input, i) => {
      if (!isImage(input)) return input;
      const place = `inputs[${i}].image`;
      return { picture: await bytesOf(input.image, place), place };
    }),
  );
}

type Image = NonNullable<ChatTextPart['image']>;

const hasImage = (part: ChatTextPart | null): part is ChatTextPart & { image: Image } =>
  part?.type === 'image' && part.image !== undefined;

async function sent(image: Image, place: string): Promise<ChatTextPart> {
  const { buffer, byteOffset, byteLength } = await bytesOf(image, place);
  const base64 = Buffer.from(buffer, byteOffset, byteLength).toString('base64');
  return { type: 'image_url', image_url: { url: `data:;base64,${base64}` } };
}

async function bytesOf(image: unknown, place: string): Promise<Uint8Array> {
  if (image instanceof Uint8Array) return image;
  if (typeof image !== 'string' && !(image instanceof Blob))
    throw new InvalidRequestError(`'${place}' has to be a Uint8Array, a Blob or the path of a file.`, place);
  try {
    if (image instanceof Blob) return await bytesOfBlob(image);
    const found = await stat(image);
    // Devices and pipes have no end, or none that comes.
    if (!found.isFile()) throw new PictureError('it is no file.');
    checkBytes(found.size, PICTURE_LIMITS);
    return await readFile(image);
  } catch (error) {
    throw new InvalidRequestError(`'${place}' cannot be read: ${messageOf(error)}`, place);
  }
}

async function bytesOfBlob(blob: Blob): Promise<Uint8Array> {
  checkBytes(blob.size, PICTURE_LIMITS);
  return new Uint8Array(await blob.arrayBuffer());
}
