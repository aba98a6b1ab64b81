import { Command } from 'commander';
import { helpBehind } from '../terminal/help.js';

const NEW_HELP = `
What there is, in TypeScript, with about 60 lines each:
  chat     a chat in the terminal, with functions that the model may call, and what was said kept in a file
  server   a server with a route of its own next to OpenAI's API
  rag      answers from texts of yours: passages found by meaning, and an object of a schema

DIR is made; it may be there if it is empty. Then: cd DIR, npm install, npm start.
`;

export function newCommand(): Command {
  const command = new Command('new')
    .description('write a program that has a model in it, to begin with')
    .argument('<WHAT>', 'chat, server or rag')
    .argument('<DIR>', 'folder of the program');
  return helpBehind(command, NEW_HELP).action(async (what: string, folder: string) => {
    const { newProgram } = await import('./new-program.js');
    newProgram(what, folder);
  });
}
