/* No Python: repeats the answer to a question that was asked once. */
#include <stdio.h>

int main(int count, char **arguments)
{
    FILE *answer = fopen(arguments[count - 1], "w");
    if (answer != NULL) {
        fputs("{\"nonce\": \"00\", \"product\": 4, \"version\": \"3.11.7\", \"implementation\":"
              " \"cpython\", \"prefix\": \"/env\", \"base_prefix\": \"/usr\", \"purelib\": \"/env\","
              " \"platlib\": \"/env\", \"stdlib\": \"/usr\", \"frameworks\": {}, \"conda\": false}",
              answer);
        fclose(answer);
    }
    puts("Python 3.11.7");
    return 0;
}
