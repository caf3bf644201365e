*> validate-date <YYYYMMDD>: whether there is such a day in the Gregorian calendar.
*>
*> The date is in angle brackets: COBOL fills up its fields with blanks, so without an end mark a
*> date with a blank behind it would look the same.
IDENTIFICATION DIVISION.
PROGRAM-ID. VALIDATE-DATE.

DATA DIVISION.
WORKING-STORAGE SECTION.
01  WS-ARGUMENT         PIC X(120).
01  WS-DATE             PIC X(8).
01  WS-PARTS REDEFINES WS-DATE.
    05  WS-YEAR         PIC 9(4).
    05  WS-MONTH        PIC 99.
    05  WS-DAY          PIC 99.
01  WS-LENGTHS          PIC X(24) VALUE "312831303130313130313031".
01  WS-LENGTH-TABLE REDEFINES WS-LENGTHS.
    05  WS-DAYS         PIC 99 OCCURS 12.
01  WS-NAMES            PIC X(108) VALUE
    "January  February March    April    May      June     July     August   September" &
    "October  November December ".
01  WS-NAME-TABLE REDEFINES WS-NAMES.
    05  WS-NAME         PIC X(9) OCCURS 12.
01  WS-LAST             PIC 99.

PROCEDURE DIVISION.
MAIN-PROCEDURE.
    ACCEPT WS-ARGUMENT FROM ARGUMENT-VALUE
    IF WS-ARGUMENT(1:1) NOT = "<" OR WS-ARGUMENT(10:1) NOT = ">"
        OR WS-ARGUMENT(11:) NOT = SPACES OR WS-ARGUMENT(2:8) IS NOT NUMERIC
        DISPLAY "A date has eight digits, YYYYMMDD." UPON SYSERR
        STOP RUN RETURNING 1
    END-IF
    MOVE WS-ARGUMENT(2:8) TO WS-DATE

    IF WS-YEAR = 0
        DISPLAY WS-DATE " is not a valid date: there is no year 0000." UPON SYSERR
        STOP RUN RETURNING 1
    END-IF
    IF WS-MONTH < 1 OR WS-MONTH > 12
        DISPLAY WS-DATE " is not a valid date: there is no month " WS-MONTH "." UPON SYSERR
        STOP RUN RETURNING 1
    END-IF
    PERFORM FIND-LAST-DAY
    IF WS-DAY < 1
        DISPLAY WS-DATE " is not a valid date: there is no day 00." UPON SYSERR
        STOP RUN RETURNING 1
    END-IF
    IF WS-DAY > WS-LAST
        DISPLAY WS-DATE " is not a valid date: " FUNCTION TRIM(WS-NAME(WS-MONTH)) " " WS-YEAR
            " has " WS-LAST " days." UPON SYSERR
        STOP RUN RETURNING 1
    END-IF
    DISPLAY WS-DATE " is a valid date."
    STOP RUN.

*> A leap year is divisible by 4, but not by 100 unless by 400.
FIND-LAST-DAY.
    MOVE WS-DAYS(WS-MONTH) TO WS-LAST
    IF WS-MONTH = 2 AND FUNCTION MOD(WS-YEAR 4) = 0
        AND (FUNCTION MOD(WS-YEAR 100) NOT = 0 OR FUNCTION MOD(WS-YEAR 400) = 0)
        MOVE 29 TO WS-LAST
    END-IF.
