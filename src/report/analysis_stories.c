/* analysis_stories.c -- one prompt continued by every model, side by side, and how much each repeats itself. */
#include "report/analysis_int.h"

#include <stdio.h>

enum { STORIES = LAM_ANALYSED + 1, COLS = 7 };

typedef struct stories {
    int n;
    const char *names[STORIES], *texts[STORIES], *notes[STORIES];
    const lam_story *list[STORIES];
    char note[STORIES][96];
} stories;

static void add(stories *s, const char *name, const lam_story *story)
{
    if (!story->text)
        return;
    snprintf(s->note[s->n], sizeof *s->note, "distinct-2 %.2f, repeated words %.0f\xc2\xa0%%",
             story->counts.distinct[1], 100.0 * story->counts.repeated);
    s->names[s->n] = name;
    s->texts[s->n] = story->text;
    s->notes[s->n] = s->note[s->n];
    s->list[s->n++] = story;
}

static lam_status table(lam_page *page, const stories *s)
{
    static const lam_column columns[COLS] = {
        {.name = "continuation"},
        {.name = "words"},
        {.name = "distinct-1", .decimals = 3},
        {.name = "distinct-2", .decimals = 3},
        {.name = "distinct-3", .decimals = 3},
        {.name = "distinct-4", .decimals = 3},
        {.name = "repeated", .decimals = 3, .note = "within 16 words"}};
    lam_cell cells[STORIES][COLS] = {0};
    for (int i = 0; i < s->n; i++) {
        const lam_repetition *r = &s->list[i]->counts;
        cells[i][0].text = s->names[i];
        cells[i][1].number = r->words;
        for (int k = 0; k < LAM_DISTINCT; k++)
            cells[i][2 + k].number = r->distinct[k];
        cells[i][2 + LAM_DISTINCT].number = r->repeated;
    }
    return lam_page_table(
        page,
        &(lam_table){.id = "repetition",
                     .title = "Repetition",
                     .caption = "distinct-n: different sequences of n words over all of them; 1 "
                                "means that nothing occurs twice.  repeated: words that occur "
                                "among the 16 before them.  Short continuations differ by chance.",
                     .rows = s->n,
                     .cols = COLS,
                     .columns = columns,
                     .cells = cells[0]});
}

lam_status lam_analysis_stories(const lam_analysis *a, lam_page *page)
{
    stories s = {0};
    char caption[200];
    if (a->opt.story_tokens == 0)
        return LAM_OK;
    lam_page_heading(page, "stories", "Case study");
    for (int i = 0; i < a->n; i++)
        add(&s, a->models[i].name, &a->models[i].story);
    add(&s, "the text itself", &a->truth);
    snprintf(caption, sizeof caption,
             "%d tokens each, drawn with temperature %g, top-p %g and seed %llu.",
             a->opt.story_tokens, a->opt.sampler.temperature, a->opt.sampler.top_p,
             (unsigned long long)a->opt.sampler.seed);
    LAM_TRY(lam_page_texts(page, &(lam_texts){.id = "continuations",
                                              .title = "One prompt, several models",
                                              .caption = caption,
                                              .prompt = a->prompt_text,
                                              .n = s.n,
                                              .names = s.names,
                                              .texts = s.texts,
                                              .notes = s.notes}));
    return table(page, &s);
}
