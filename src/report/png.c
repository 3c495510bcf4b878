/* png.c -- see png.h.  The few functions of librsvg, cairo and GObject that it takes, declared here as their
 * stable interfaces have them. */
#include "report/png.h"

#include <dlfcn.h>
#include <stddef.h>

typedef struct rectangle {
    double x, y, width, height;
} rectangle;

typedef int write_function(void *closure, const unsigned char *data, unsigned length);

enum { CAIRO_FORMAT_ARGB32 = 0, CAIRO_OK = 0, CAIRO_WRITE_ERROR = 11, MOST_PIXELS = 8192 };

static struct {
    void *(*rsvg_handle_new_from_data)(const unsigned char *data, size_t size, void **error);
    int (*rsvg_handle_get_intrinsic_size_in_pixels)(void *handle, double *width, double *height);
    int (*rsvg_handle_render_document)(void *handle, void *cr, const rectangle *viewport,
                                       void **error);
    void (*g_object_unref)(void *object);
    void *(*cairo_image_surface_create)(int format, int width, int height);
    void *(*cairo_create)(void *surface);
    int (*cairo_status)(void *cr);
    int (*cairo_surface_write_to_png_stream)(void *surface, write_function *write, void *closure);
    void (*cairo_destroy)(void *cr);
    void (*cairo_surface_destroy)(void *surface);
} api;

static const char *opened(void)
{
    static const struct {
        const char *name;
        void **at;
    } functions[] = {
#define FUNCTION(name) {#name, (void **)&api.name}
        FUNCTION(rsvg_handle_new_from_data),
        FUNCTION(rsvg_handle_get_intrinsic_size_in_pixels),
        FUNCTION(rsvg_handle_render_document),
        FUNCTION(g_object_unref),
        FUNCTION(cairo_image_surface_create),
        FUNCTION(cairo_create),
        FUNCTION(cairo_status),
        FUNCTION(cairo_surface_write_to_png_stream),
        FUNCTION(cairo_destroy),
        FUNCTION(cairo_surface_destroy),
#undef FUNCTION
    };
    void *const library = dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return "no PNG: librsvg-2.so.2 is not installed";
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!(*functions[i].at = dlsym(library, functions[i].name)))
            return "no PNG: this librsvg is older than 2.52";
    return NULL;
}

const char *lam_png_missing(void)
{
    static int asked;
    static const char *why;
    if (!asked)
        why = opened();
    asked = 1;
    return why;
}

static int append(void *closure, const unsigned char *data, unsigned length)
{
    lam_text *const png = closure;
    lam_text_bytes(png, data, length);
    return png->failed ? CAIRO_WRITE_ERROR : CAIRO_OK;
}

/* Renders `handle` over the whole of a surface of w x h pixels. */
static lam_status render(lam_text *png, void *handle, int w, int h)
{
    void *const surface = api.cairo_image_surface_create(CAIRO_FORMAT_ARGB32, w, h);
    void *const cr = api.cairo_create(surface); /* cairo objects are never NULL */
    const rectangle all = {0, 0, w, h};
    lam_status status = LAM_OK;
    if (!api.rsvg_handle_render_document(handle, cr, &all, NULL) ||
        api.cairo_status(cr) != CAIRO_OK ||
        api.cairo_surface_write_to_png_stream(surface, append, png) != CAIRO_OK)
        status = lam_fail(LAM_ERR_MEMORY, "a PNG of %d x %d pixels cannot be drawn", w, h);
    api.cairo_destroy(cr);
    api.cairo_surface_destroy(surface);
    return status;
}

lam_status lam_png_draw(lam_text *png, const lam_text *svg, double scale)
{
    double width, height;
    if (lam_png_missing())
        return lam_fail(LAM_ERR_UNSUPPORTED, "%s", lam_png_missing());
    void *const handle =
        api.rsvg_handle_new_from_data((const unsigned char *)svg->data, svg->size, NULL);
    if (!handle)
        return lam_fail(LAM_ERR_FORMAT, "librsvg does not read this SVG of %zu bytes", svg->size);
    lam_status status;
    if (!api.rsvg_handle_get_intrinsic_size_in_pixels(handle, &width, &height) ||
        !(width * scale >= 1 && width * scale <= MOST_PIXELS && height * scale >= 1 &&
          height * scale <= MOST_PIXELS))
        status = lam_fail(LAM_ERR_ARG, "a PNG has 1 to %d pixels each way", MOST_PIXELS);
    else
        status = render(png, handle, (int)(width * scale), (int)(height * scale));
    api.g_object_unref(handle);
    return status;
}
