// A chat in the terminal, with functions that the model may call. It goes on where it was: chat.json keeps it.
//
//     npm install && npm start
//     MODEL=path/to/a/model npm start
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { stdin, stdout } from 'node:process';
import { createInterface } from 'node:readline/promises';
import { type ChatSession, Skein, SkeinError, tool } from 'skein';
import * as z from 'zod';

const FILE = process.env.CHAT ?? 'chat.json';
const MODEL = process.env.MODEL ?? 'HuggingFaceTB/SmolLM2-135M-Instruct';

const tools = {
  get_time: tool({
    description: 'The date and the time in a time zone',
    input: z.object({ zone: z.string().max(40).describe('Such as Europe/Oslo') }),
    execute: ({ zone }) => new Date().toLocaleString('en', { timeZone: zone }),
  }),
};

/** Prints an answer as it comes. Ctrl-C ends the answer, not the program. */
async function answer(chat: ChatSession, question: string): Promise<void> {
  const abort = new AbortController();
  const stop = () => abort.abort();
  process.once('SIGINT', stop);
  try {
    for await (const event of chat.stream(question, { signal: abort.signal })) {
      if (event.type === 'text') stdout.write(event.text);
      else if (event.type === 'call')
        stdout.write(`[${event.name}: ${event.error ?? String(event.result)}] `);
      else if (event.type === 'room') stdout.write(`[${event.leftOut} messages are forgotten] `);
    }
    stdout.write('\n');
  } catch (error) {
    if (!abort.signal.aborted && !(error instanceof SkeinError)) throw error;
    stdout.write(`\n(${error instanceof Error ? error.message : String(error)})\n`);
  } finally {
    process.off('SIGINT', stop);
  }
}

async function main(): Promise<void> {
  await using skein = await Skein.load({
    model: MODEL,
    onDownload: ({ done, total }) => stdout.write(`\r${Math.round((100 * done) / total)} % downloaded`),
  });
  const saved: unknown = existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : undefined;
  const chat = await skein.chat({ system: 'You are a helpful assistant.', tools, saved, maxTokens: 400 });
  const lines = createInterface({ input: stdin });
  stdout.write(`${skein.info.name} is ready. An empty line ends the chat.\n> `);
  for await (const line of lines) {
    if (line.trim() === '') break;
    await answer(chat, line);
    writeFileSync(FILE, JSON.stringify(chat.save()));
    stdout.write('> ');
  }
  lines.close();
}

void main();
