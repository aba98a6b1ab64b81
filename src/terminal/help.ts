import type { Command } from 'commander';
import { wrapped, wrappedItem, wrappedText } from './wrapped-text.js';

/** Where the output is no terminal. */
const WIDTH = 80;
/** As commander begins. */
const USAGE = 'Usage: ';

/** Gives a command a help that fits into a terminal of any width. */
export function wrapHelp(command: Command): void {
  command.configureHelp({
    minWidthToWrap: 1,
    styleUsage(usage) {
      return wrapped(usage, (this.helpWidth ?? WIDTH) - USAGE.length).join(`\n${' '.repeat(USAGE.length)}`);
    },
    boxWrap: (text, width) => wrapped(text, width).join('\n'),
    formatItem: (term, termWidth, description, help) =>
      wrappedItem(term, description, termWidth, help.helpWidth ?? WIDTH),
  });
}

/** Writes a text behind the options in --help. */
export function helpBehind(command: Command, text: string): Command {
  return command.addHelpText('after', () => {
    const width = command.configureOutput().getOutHelpWidth?.() ?? WIDTH;
    return wrappedText(text, width);
  });
}
