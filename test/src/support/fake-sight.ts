import type { ChatMessage } from '../../../models/chat-template.js';
import { InvalidRequestError } from '../../../src/errors/request-errors.js';
import type { Sight } from '../../../src/generation/pictures/picture.js';
import type { ChatRenderOptions, TextCodec } from '../../../src/generation/text-model.js';
import { bytesOf, TOY_VOCAB, toyCodec } from './toy-codec.js';

/** The byte that stands for a picture's tokens. */
export const IMAGE = 255;

/** A toy that writes pictures where they stand in the messages, and a sight that notes the files that it looks at and the places of those that it decodes. @param fail of a file that is decoded @param bytes of a picture */
export function seeingToy(fail: (file: Uint8Array) => Error | null = () => null, bytes = 100) {
  const read: { file: number[]; length: number; place: string }[] = [];
  const decoded: string[] = [];
  const sight: Sight = {
    placeholder: '<i>',
    tokenId: IMAGE,
    look: (file, place) => {
      if (file[0] === 0) throw new InvalidRequestError(`${place}: it is no picture.`, place, 'invalid_image');
      read.push({ file: [...file.subarray(0, 4)], length: file.length, place });
      const decode = async () => {
        const error = fail(file);
        if (error !== null) throw error;
        decoded.push(place);
        const ids = Int32Array.of(TOY_VOCAB + file[0]!, TOY_VOCAB + file[0]! + 1);
        return { ids, rows: async () => Float32Array.of(file[0]!, 0, file[0]!, 1) };
      };
      return { text: '<i><i>', grids: [{ rows: 1, columns: 2 }], bytes, decode };
    },
  };
  const codec: TextCodec = { ...toyCodec, templateSource: '{{ messages }}{{ tools }}', encodeChat };
  return { fields: { sight, codec }, read, decoded };
}

function encodeChat(messages: readonly ChatMessage[], { pictures }: ChatRenderOptions): number[] {
  let place = 0;
  return messages.flatMap(({ role, content }) => {
    const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
    const written = parts.flatMap(({ type, text }) =>
      type === 'image' ? Array(pictures!.texts[place++]!.length / 3).fill(IMAGE) : bytesOf(text!),
    );
    return [...bytesOf(role[0]!), ...written];
  });
}

export const base64Of = (...bytes: number[]): string => Buffer.from(bytes).toString('base64');
export const dataUrl = (...bytes: number[]): string => `data:image/png;base64,${base64Of(...bytes)}`;
