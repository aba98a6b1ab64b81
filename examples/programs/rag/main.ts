// Answers from your own texts: the passages nearest to a question are found by meaning, and a model answers from them.
//
//     npm install && npm start -- texts "When does the zoo open?"
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Encoder, Skein } from 'skein';
import * as z from 'zod';

const MODEL = process.env.MODEL ?? 'HuggingFaceTB/SmolLM2-135M-Instruct';
const ENCODER = process.env.ENCODER ?? 'sentence-transformers/all-MiniLM-L6-v2';
/** Passages that the model sees. */
const NEAREST = 3;

interface Passage {
  file: string;
  text: string;
  row: Float32Array;
}

const answer = z.object({ answer: z.string().max(400), file: z.string().max(100) });

/** The paragraphs of all texts in a folder, with their embeddings. */
async function passagesOf(folder: string, encoder: Encoder): Promise<Passage[]> {
  const files = readdirSync(folder).filter((name) => /\.(txt|md)$/.test(name));
  const found = files.flatMap((file) => {
    const paragraphs = readFileSync(join(folder, file), 'utf8').split(/\n\s*\n/);
    return paragraphs.map((text) => ({ file, text: text.trim() })).filter(({ text }) => text !== '');
  });
  const rows = await encoder.embed(
    found.map(({ text }) => text),
    {
      normalize: true,
      truncatePromptTokens: -1,
      onProgress: (done, all) => process.stderr.write(`${done} of ${all} passages\n`),
    },
  );
  return found.map((passage, i) => ({ ...passage, row: rows[i]! }));
}

/** The passages nearest to a question, the nearest first. */
async function nearest(question: string, passages: readonly Passage[], encoder: Encoder): Promise<Passage[]> {
  const [query] = await encoder.embed(question, { normalize: true, truncatePromptTokens: -1 });
  const cosine = ({ row }: Passage) => row.reduce((sum, value, i) => sum + value * query![i]!, 0);
  return passages.toSorted((a, b) => cosine(b) - cosine(a)).slice(0, NEAREST);
}

async function main([folder = 'texts', question = 'What is this about?']: string[]): Promise<void> {
  await using encoder = await Encoder.load({ model: ENCODER });
  const found = await nearest(question, await passagesOf(folder, encoder), encoder);
  await using skein = await Skein.load({ model: MODEL });
  const chat = await skein.chat({
    system: 'Answer from the passages alone, and name the file.',
    temperature: 0,
  });
  const passages = found.map(({ file, text }) => `<passage file="${file}">\n${text}\n</passage>`).join('\n');
  const { object } = await chat.send(`${passages}\n\n${question}`, { object: answer, maxTokens: 400 });
  console.log(
    `${object.answer}\n(nearest: ${found.map(({ file }) => file).join(', ')}; named: ${object.file})`,
  );
}

void main(process.argv.slice(2));
