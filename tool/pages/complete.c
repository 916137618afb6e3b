#define _GNU_SOURCE
#include "pages.h"

#include <stdio.h>
#include <string.h>

#include "tool/commands.h"

/* argp's own options, which every command has. */
static const struct option_row usual[] = {{"help", '?', NULL, .help = "print help"},
                                          {"usage", 0, NULL, .help = "print the options"},
                                          {"version", 'V', NULL, .help = "print the version"},
                                          {0}};

static const struct option_row none[] = {{0}};

static const struct option_row *options_of(const struct command *command)
{
    return command->options ? command->options : none;
}

static bool runs_program(const struct command *command)
{
    return command->arguments && strstr(command->arguments, "PROGRAM");
}

static bool is_path(const char *arg)
{
    return arg && (strstr(arg, "PATH") || strstr(arg, "FILE") || strstr(arg, "FOLDER"));
}

/* Prints text for single quotes of a shell, with a backslash before each of the characters of
 * `escaped`. */
static void put_quoted(const char *text, const char *escaped)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", stdout);
        else if (strchr(escaped, *text))
            putchar('\\');
        putchar(*text);
    }
}

/* Prints the words of "auto|gpu|cpu". */
static void put_choices(const char *arg)
{
    for (; *arg; arg++)
        putchar(*arg == '|' ? ' ' : *arg);
}

/* ---- bash ---- */

static void put_names(const struct option_row *option)
{
    for (; option->name; option++)
        printf("--%s%s ", option->name, option->argument && !option->optional ? "=" : "");
}

static void bash_command(const struct command *command)
{
    printf("        %s)\n            options='", command->name);
    put_names(options_of(command));
    put_names(usual);
    printf("'\n            program=%d\n            case $option in\n", runs_program(command));
    for (const struct option_row *option = options_of(command); option->name; option++) {
        if (!option->argument)
            continue;
        printf("                --%s", option->name);
        if (option->letter)
            printf("|-%c", option->letter);
        printf(") values='");
        if (strchr(option->argument, '|'))
            put_choices(option->argument);
        printf("' files=%d ;;\n", is_path(option->argument));
    }
    puts("            esac\n            ;;");
}

void complete_bash(void)
{
    puts("# bash completion for accel. Made from the tool's tables: see tool/pages/.\n"
         "_accel()\n"
         "{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} options= "
         "values= files= program=0 i\n"
         "    COMPREPLY=()\n"
         "    if ((COMP_CWORD == 1)); then");
    printf("        mapfile -t COMPREPLY < <(compgen -W '");
    for (int i = 0; i < COMMANDS; i++)
        printf("%s ", commands[i]->name);
    put_names(usual);
    puts("' -- \"$word\")\n"
         "        return\n"
         "    fi\n"
         "    # `--policy=g' is three words here.\n"
         "    [ \"$word\" != = ] || word=\n"
         "    [ \"$option\" != = ] || option=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "    case ${COMP_WORDS[1]} in");
    for (int i = 0; i < COMMANDS; i++)
        bash_command(commands[i]);
    puts("    esac\n"
         "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
         "        if [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
         "            # A program, then its own words.\n"
         "            if ((i + 1 == COMP_CWORD)); then mapfile -t COMPREPLY < <(compgen -c -- "
         "\"$word\"); fi\n"
         "            return\n"
         "        fi\n"
         "    done\n"
         "    if [ -n \"$values\" ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$word\")\n"
         "    elif [ -n \"$files\" ]; then\n"
         "        [ \"$files\" = 0 ] || mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
         "    elif [[ $word == -* ]]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
         "        [[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace 2>/dev/null\n"
         "    elif [ \"$program\" = 1 ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -c -- \"$word\")\n"
         "    fi\n"
         "}\n"
         "complete -o default -F _accel accel");
}

/* ---- zsh ---- */

static void zsh_option(const struct option_row *option)
{
    const char *const equals = !option->argument ? "" : option->optional ? "=-" : "=";
    if (option->letter)
        printf(" '(-%c --%s)'{'-%c%s','--%s%s'}'[", option->letter, option->name, option->letter,
               option->argument ? "+" : "", option->name, equals);
    else
        printf(" '--%s%s[", option->name, equals);
    put_quoted(option->help, "[]\\:");
    putchar(']');
    if (option->argument && strchr(option->argument, '|')) {
        printf(":value:(");
        put_choices(option->argument);
        putchar(')');
    } else if (option->argument) {
        printf("%s:value:%s", option->optional ? ":" : "",
               is_path(option->argument) ? "_files" : " ");
    }
    puts("' \\");
}

void complete_zsh(void)
{
    puts("#compdef accel\n"
         "# zsh completion for accel. Made from the tool's tables: see tool/pages/.\n"
         "_accel() {\n"
         "    local -a accel_commands\n"
         "    accel_commands=(");
    for (int i = 0; i < COMMANDS; i++) {
        printf("        '%s:", commands[i]->name);
        put_quoted(commands[i]->does, ":\\");
        puts("'");
    }
    puts("    )\n"
         "    if ((CURRENT == 2)); then\n"
         "        _describe command accel_commands\n"
         "        return\n"
         "    fi\n"
         "    shift words\n"
         "    ((CURRENT--))\n"
         "    case $words[1] in");
    for (int i = 0; i < COMMANDS; i++) {
        printf("        %s)\n            _arguments -S -A '-*' \\\n", commands[i]->name);
        for (const struct option_row *option = options_of(commands[i]); option->name; option++)
            zsh_option(option);
        for (const struct option_row *option = usual; option->name; option++)
            zsh_option(option);
        printf("                %s\n            ;;\n",
               runs_program(commands[i]) ? "'*::program:_normal'" : "");
    }
    puts("    esac\n"
         "}\n"
         "_accel \"$@\"");
}

/* ---- fish ---- */

static void fish_option(const struct option_row *option, const char *command)
{
    printf("complete -c accel -n '__fish_seen_subcommand_from %s' -l %s", command, option->name);
    if (option->letter)
        printf(" -s '%c'", option->letter);
    if (option->argument && strchr(option->argument, '|')) {
        printf(" -x -a '");
        put_choices(option->argument);
        putchar('\'');
    } else if (option->argument && !option->optional) {
        printf(is_path(option->argument) ? " -r -F" : " -x");
    }
    printf(" -d '");
    put_quoted(option->help, "\\");
    puts("'");
}

void complete_fish(void)
{
    puts("# fish completion for accel. Made from the tool's tables: see tool/pages/.\n"
         "complete -c accel -f");
    for (int i = 0; i < COMMANDS; i++) {
        printf("complete -c accel -n __fish_use_subcommand -a %s -d '", commands[i]->name);
        put_quoted(commands[i]->does, "\\");
        puts("'");
        for (const struct option_row *option = options_of(commands[i]); option->name; option++)
            fish_option(option, commands[i]->name);
        for (const struct option_row *option = usual; option->name; option++)
            fish_option(option, commands[i]->name);
        if (runs_program(commands[i]))
            printf("complete -c accel -n '__fish_seen_subcommand_from %s' -x -a "
                   "'(__fish_complete_subcommand --fcs-skip=2)'\n",
                   commands[i]->name);
    }
}
