import { WORDS } from '../../../loadgen/data/words.js';
import type { TypedValue } from '../../support/gguf-writer.js';

/** GPT-2's letters of the bytes: those that print stand for themselves, the others are moved to 256 and beyond. */
function byteLetters(): string[] {
  const prints = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let moved = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(prints(byte) ? byte : moved++));
}

const SPACE = '\u0120';

/** Functions in a few tokens each: a JSON schema would be bytes, of which each is a token here. */
const FUNCTIONS =
  '{% for tool in tools or [] %}{{ tool.function.name }}:{{ tool.function.description }} {{ tool.function.parameters.properties | tojson }}\n{% endfor %}';

const TEXTS = `${FUNCTIONS}{% for message in messages %}{{ message.content }}\n{% endfor %}`;

/** Contents as one text, or as parts of texts and pictures. */
const parts = (picture: string) =>
  `{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'image' or part.type == 'image_url' %}${picture}{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}`;

/**
 * A byte-level BPE of `size` tokens, as keys of a GGUF: each word of the load generator is one token with the space in front of it;
 * any other text is bytes, and the rest of the vocabulary are names that no text is made of.
 *
 * @param pictures tokens that stand for a picture, which its template writes; none: the model reads texts alone
 *
 *   merges   (_, a) -> _a, (_a, b) -> _ab, (_ab, o) -> _abo, ...      all from the space on, so that no word disturbs another
 */
export function madeUpVocabulary(size: number, pictures: readonly string[] = []): Record<string, TypedValue> {
  const tokens = new Set(byteLetters());
  const merges: string[] = [];
  for (const word of WORDS.map((plain) => `${SPACE}${plain}`)) {
    for (let length = 2; length <= word.length; length++) {
      const token = word.slice(0, length);
      if (tokens.has(token)) continue;
      tokens.add(token);
      merges.push(`${word.slice(0, length - 1)} ${word[length - 1]}`);
    }
  }
  const end = size - 1;
  const firstControl = end - pictures.length;
  if (tokens.size > firstControl)
    throw new Error(`A vocabulary of ${size} tokens has no room for ${tokens.size + pictures.length + 1}.`);
  const all = [...tokens];
  while (all.length < firstControl) all.push(`<filler-${all.length}>`);
  all.push(...pictures, '<end>');
  const [normal, control] = [1, 3];
  return {
    'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
    'tokenizer.ggml.pre': { type: 'string', value: 'gpt-2' },
    'tokenizer.ggml.tokens': { type: 'array', of: 'string', value: all },
    'tokenizer.ggml.token_type': {
      type: 'array',
      of: 'i32',
      value: all.map((_, id) => (id >= firstControl ? control : normal)),
    },
    'tokenizer.ggml.merges': { type: 'array', of: 'string', value: merges },
    'tokenizer.ggml.bos_token_id': { type: 'u32', value: end },
    'tokenizer.ggml.eos_token_id': { type: 'u32', value: end },
    'tokenizer.ggml.add_bos_token': { type: 'bool', value: false },
    'tokenizer.chat_template': {
      type: 'string',
      value: pictures.length === 0 ? TEXTS : TEXTS.replace('{{ message.content }}', parts(pictures.join(''))),
    },
  };
}
