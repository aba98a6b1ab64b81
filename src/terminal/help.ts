import type { Command } from 'commander';
import { wrapped, wrappedItem, wrappedText } from './wrapped-text.js';

/** Width of a help text where the output is no terminal. */
const WIDTH = 80;
/** Beginning of commander's help. */
const USAGE = 'Usage: ';

/** Makes a command's help fit a terminal of any width. */
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

/** Adds a text after the options in --help. */
export function helpBehind(command: Command, text: string): Command {
  return command.addHelpText('after', () => {
    const width = command.configureOutput().getOutHelpWidth?.() ?? WIDTH;
    return wrappedText(text, width);
  });
}
